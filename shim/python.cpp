#include "shim/python.h"

#include <stdint.h>
#include <string.h>

#include <initializer_list>

#include "shim/forks.h"
#include "shim/originals.h"
#include "shim/python_memory.h"
#include "shim/session.h"

namespace cudiag {
namespace {

// CPython's C API, 3.8 to 3.14: functions of the stable ABI where there is one (Include/*.h).
// Objects are opaque.
struct Api {
    int (*is_finalizing)();           // Py_IsFinalizing (3.13), _Py_IsFinalizing (before)
    void* (*this_thread_state)();     // PyGILState_GetThisThreadState
    void* (*current_thread_state)();  // PyThreadState_GetUnchecked (3.13),
                                      // _PyThreadState_UncheckedGet (before)
    void* (*get_frame)();             // borrowed
    void* (*get_attribute)(void*, const char*);
    const char* (*utf8)(void*, intptr_t*);
    long (*as_long)(void*);
    void* (*type_of)(void*);
    void* (*item)(void*, intptr_t);       // PyTuple_GetItem, borrowed
    void* (*system_object)(const char*);  // PySys_GetObject, borrowed
    void* (*cause)(
        void*);  // PyException_GetCause, PyException_GetContext, PyException_GetTraceback: new
    void* (*context)(void*);
    void* (*traceback)(void*);
    void (*drop)(void*);  // Py_DecRef
    void (*fetch_error)(void**, void**, void**);
    void (*restore_error)(void*, void*, void*);
    void* none;

    // For reading without the GIL; nullptr: it is not done.
    const char* (*version)();     // Py_GetVersion
    void* (*interpreter)();       // PyInterpreterState_Head: the newest
    void* (*main_interpreter)();  // PyInterpreterState_Main
    int (*collect_garbage)();     // PyGC_Enable, PyGC_Disable: what it was before (3.10)
    int (*keep_garbage)();
    const void* runtime;        // _PyRuntime
    const void* type_of_types;  // PyType_Type
    const void* frame_type;     // PyFrame_Type
    PythonTypes types;

    bool complete() const {
        return is_finalizing != nullptr && this_thread_state != nullptr &&
               current_thread_state != nullptr && get_frame != nullptr &&
               get_attribute != nullptr && utf8 != nullptr && as_long != nullptr &&
               type_of != nullptr && item != nullptr && system_object != nullptr &&
               cause != nullptr && context != nullptr && traceback != nullptr && drop != nullptr &&
               fetch_error != nullptr && restore_error != nullptr;
    }
};

template <class Function>
void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(find_symbol(name));
}

Api python;
bool python_found = false;

bool has_python() {
    if (__atomic_load_n(&python_found, __ATOMIC_ACQUIRE)) {
        return true;
    }
    find(python.this_thread_state, "PyGILState_GetThisThreadState");
    if (python.this_thread_state == nullptr) {
        return false;  // the common case: one walk, no more
    }
    find(python.is_finalizing, "Py_IsFinalizing");
    if (python.is_finalizing == nullptr) {
        find(python.is_finalizing, "_Py_IsFinalizing");
    }
    find(python.current_thread_state, "PyThreadState_GetUnchecked");
    if (python.current_thread_state == nullptr) {
        find(python.current_thread_state, "_PyThreadState_UncheckedGet");
    }
    find(python.get_frame, "PyEval_GetFrame");
    find(python.get_attribute, "PyObject_GetAttrString");
    find(python.utf8, "PyUnicode_AsUTF8AndSize");
    find(python.as_long, "PyLong_AsLong");
    find(python.type_of, "PyObject_Type");
    find(python.item, "PyTuple_GetItem");
    find(python.system_object, "PySys_GetObject");
    find(python.cause, "PyException_GetCause");
    find(python.context, "PyException_GetContext");
    find(python.traceback, "PyException_GetTraceback");
    find(python.drop, "Py_DecRef");
    find(python.fetch_error, "PyErr_Fetch");
    find(python.restore_error, "PyErr_Restore");
    python.none = find_symbol("_Py_NoneStruct");
    find(python.version, "Py_GetVersion");
    find(python.interpreter, "PyInterpreterState_Head");
    find(python.main_interpreter, "PyInterpreterState_Main");
    find(python.collect_garbage, "PyGC_Enable");
    find(python.keep_garbage, "PyGC_Disable");
    python.runtime = find_symbol("_PyRuntime");
    python.type_of_types = find_symbol("PyType_Type");
    python.frame_type = find_symbol("PyFrame_Type");
    python.types = {find_symbol("PyCode_Type"), find_symbol("PyUnicode_Type"),
                    find_symbol("PyBytes_Type"), nullptr};
    __atomic_store_n(&python_found, python.complete(), __ATOMIC_RELEASE);
    return python_found;
}

// The thread's own state is the one that runs: PyGILState_Check alone answers yes to everybody once
// sub-interpreters exist. Py_IsInitialized is of no use: it says no from the beginning of
// finalization, when the last exception is still there; before initialization both are null.
bool holds_gil() {
    if (!has_python()) {
        return false;
    }
    const void* own = python.this_thread_state();
    return own != nullptr && own == python.current_thread_state();
}

// Puts the program's pending exception aside, and back: the lookups below may raise one of their
// own.
class KeepException {
  public:
    KeepException() { python.fetch_error(&type_, &value_, &traceback_); }

    ~KeepException() { python.restore_error(type_, value_, traceback_); }

    KeepException(const KeepException&) = delete;
    KeepException& operator=(const KeepException&) = delete;

  private:
    void* type_ = nullptr;
    void* value_ = nullptr;
    void* traceback_ = nullptr;
};

// A frame object that the API makes may set off a collection (to 3.11), and that runs code of the
// program's, here in the middle of a call.
class NoCollection {
  public:
    NoCollection()
        : was_on_(python.collect_garbage != nullptr && python.keep_garbage != nullptr &&
                  python.keep_garbage() != 0) {}

    ~NoCollection() {
        if (was_on_) {
            (void)python.collect_garbage();
        }
    }

    NoCollection(const NoCollection&) = delete;
    NoCollection& operator=(const NoCollection&) = delete;

  private:
    bool was_on_;
};

void forget_error() {
    void* type = nullptr;
    void* value = nullptr;
    void* traceback = nullptr;
    python.fetch_error(&type, &value, &traceback);
    for (void* object : {type, value, traceback}) {
        if (object != nullptr) {
            python.drop(object);
        }
    }
}

// A new reference, or nullptr (an error is forgotten).
void* attribute(void* object, const char* name) {
    void* value = object == nullptr ? nullptr : python.get_attribute(object, name);
    if (value == nullptr && object != nullptr) {
        forget_error();
    }
    return value;
}

void drop(void* object) {
    if (object != nullptr) {
        python.drop(object);
    }
}

FieldValue text_field(Field field, void* unicode) {
    intptr_t size = 0;
    const char* bytes = unicode == nullptr ? nullptr : python.utf8(unicode, &size);
    if (bytes == nullptr) {
        if (unicode != nullptr) {
            forget_error();  // not a str, or a lone surrogate
        }
        return FieldValue::of(field, "", 0);
    }
    constexpr intptr_t kLongest = 32768;  // a build's whole output
    return FieldValue::of(field, bytes, static_cast<size_t>(size < kLongest ? size : kLongest));
}

bool is_none(const void* object) {
    return object == nullptr || object == python.none;
}

// Whether frames are read from memory, and how. The layout is written once, before `proved`.
enum class Memory : uint8_t { unknown, proved, refuted };
uint8_t memory = static_cast<uint8_t>(Memory::unknown);  // atomic: clang takes no enum
uint32_t comparisons = 0;
PythonLayout layout;

Memory memory_state() {
    return static_cast<Memory>(__atomic_load_n(&memory, __ATOMIC_ACQUIRE));
}

void settle_memory(Memory state) {
    __atomic_store_n(&memory, static_cast<uint8_t>(state), __ATOMIC_RELEASE);
}

// A thread's state outlives what runs in it, but for the end of the interpreter, which takes away
// those of others; and with sub-interpreters (to 3.11) it need not be the one that runs.
const void* thread_to_read() {
    if (memory_state() != Memory::proved || python.is_finalizing() != 0 ||
        python.interpreter() != python.main_interpreter()) {
        return nullptr;
    }
    return python.this_thread_state();
}

const void* word_at(const void* object, size_t offset) {
    const void* word = nullptr;
    memcpy(&word, static_cast<const char*>(object) + offset, sizeof word);
    return word;
}

// Is there a layout, and are objects as it says? Without a GIL, and with Py_TRACE_REFS, the type of
// an object is elsewhere (Include/object.h): the type of types is itself.
bool find_layout() {
    constexpr size_t kType = 8;  // PyObject.ob_type
    const PythonTypes& types = python.types;
    if (sizeof(void*) != 8 || python.version == nullptr || python.interpreter == nullptr ||
        python.main_interpreter == nullptr || python.type_of_types == nullptr ||
        python.frame_type == nullptr) {
        return false;
    }
    for (const void* type : {python.type_of_types, types.code, types.text, types.bytes}) {
        if (type == nullptr || word_at(type, kType) != python.type_of_types) {
            return false;
        }
    }
    if (!python_layout_of(python.version(), &layout) &&
        !python_layout_at(python.runtime, &layout)) {
        return false;
    }
    const bool frames_are_objects = layout.code_begin == PythonLayout::kNoOffset;
    python.types.frame = frames_are_objects ? python.frame_type : nullptr;
    return true;
}

enum class Compared : uint8_t { equal, unreadable, different };

Compared compare_text(const PythonText& text, void* object) {
    intptr_t size = 0;
    const char* bytes = object == nullptr ? nullptr : python.utf8(object, &size);
    if (bytes == nullptr || text.characters == nullptr) {
        if (object != nullptr && bytes == nullptr) {
            forget_error();  // a lone surrogate
        }
        return Compared::unreadable;
    }
    return same_python_text(text, bytes, static_cast<size_t>(size)) ? Compared::equal
                                                                    : Compared::different;
}

Compared compare_code(const PythonFrame& read, void* code, long line) {
    void* file = attribute(code, "co_filename");
    void* function = attribute(code, "co_qualname");  // 3.11
    if (function == nullptr) {
        function = attribute(code, "co_name");
    }
    const Compared files = compare_text(python_file_of(layout, python.types, code), file);
    const Compared functions =
        compare_text(python_function_of(layout, python.types, code), function);
    drop(function);
    drop(file);
    if (python_line_of(layout, python.types, read) != (line > 0 ? line : 0)) {
        return Compared::different;
    }
    return files > functions ? files : functions;
}

// Brings `stack` to the frame that the API has next. No address is followed before the API gave the
// same, but for those of frames that the interpreter puts between (3.12).
bool reaches(const PythonStack& stack, const void* frame) {
    constexpr size_t kInterpreterFrame = 24;  // PyFrameObject.f_frame (3.11 to 3.14)
    const void* expected =
        layout.code_begin == PythonLayout::kNoOffset ? frame : word_at(frame, kInterpreterFrame);
    const void* at = stack.position();
    for (int between = 0; at != nullptr && at != expected && between < 8; ++between) {
        if (!stack.passes_over(at)) {
            return false;
        }
        at = stack.behind(at);
    }
    return at != nullptr && at == expected;
}

// All frames, from the innermost out, as far as `deepest`.
Compared compare_frames() {
    constexpr size_t kDeepest = 64;
    constexpr size_t kEnough = 2;  // one frame alone says little of how they hang together
    PythonStack stack(layout, python.types, python.this_thread_state());
    size_t equal = 0;
    Compared result = Compared::equal;
    void* held = nullptr;
    void* frame = python.get_frame();
    size_t depth = 0;
    for (; !is_none(frame) && depth < kDeepest && result != Compared::different; ++depth) {
        void* code = attribute(frame, "f_code");
        void* line = attribute(frame, "f_lineno");
        const long number = is_none(line) ? 0 : python.as_long(line);
        PythonFrame read;
        result = Compared::different;
        if (reaches(stack, frame) && stack.next(&read) && read.code == code) {
            result = compare_code(read, code, number);
            equal += result == Compared::equal ? 1 : 0;
        }
        drop(line);
        drop(code);
        void* outer = attribute(frame, "f_back");
        drop(held);
        held = outer;
        frame = outer;
    }
    drop(held);
    PythonFrame beyond;
    if (result == Compared::different || (depth < kDeepest && stack.next(&beyond))) {
        return Compared::different;
    }
    return equal >= kEnough ? Compared::equal : Compared::unreadable;
}

void note_exception(void* exception, uint64_t chain) {
    void* type = python.type_of(exception);
    void* name = attribute(type, "__name__");
    void* arguments = attribute(exception, "args");
    // Texts only, and the number of an OSError: str() of an exception may run the program's own
    // code.
    constexpr intptr_t kMostArguments = 4;
    FieldValue fields[4 + kMostArguments + kPythonFields] = {text_field(Field::type, name)};
    size_t count = 1;
    fields[count++] = FieldValue::of(Field::chain, chain);
    void* file = attribute(exception, "filename");
    void* number = attribute(exception, "errno");
    const bool of_system = !is_none(number);
    if (of_system) {
        fields[count++] =
            FieldValue::of(Field::error, static_cast<uint64_t>(python.as_long(number)));
        forget_error();  // errno may be anything
        fields[count++] = text_field(Field::path, is_none(file) ? nullptr : file);
    }
    for (intptr_t i = of_system ? 1 : 0; i < (of_system ? 2 : kMostArguments); ++i) {
        void* argument = arguments == nullptr ? nullptr : python.item(arguments, i);
        if (argument == nullptr) {
            forget_error();
            break;
        }
        const bool first = i == (of_system ? 1 : 0);
        const FieldValue field = text_field(first ? Field::text : Field::value, argument);
        if (first || field.size > 0) {
            fields[count++] = field;
        }
    }
    void* traceback = python.traceback(exception);
    PythonFrames frames;
    count += is_none(traceback) ? 0 : frames.collect_traceback(traceback, fields + count);
    (void)note(EntryKind::python_exception, fields, count);
    drop(traceback);
    drop(number);
    drop(file);
    drop(arguments);
    drop(name);
    drop(type);
}

bool exception_noted = false;

// Borrowed; nullptr or None if there is none.
void* last_exception() {
    void* exception = python.system_object("last_exc");  // 3.12
    return is_none(exception) ? python.system_object("last_value") : exception;
}

}  // namespace

void prove_python_memory(LookForPython look) {
    constexpr uint32_t kMostComparisons = 1024;  // of a program that has one frame each time
    if (memory_state() != Memory::unknown ||
        (look == LookForPython::no && !__atomic_load_n(&python_found, __ATOMIC_ACQUIRE)) ||
        !holds_gil() || python.is_finalizing() != 0 || comparisons >= kMostComparisons ||
        in_vfork_child()) {
        return;
    }
    ++comparisons;
    // Whoever is here has the GIL.
    if (!find_layout()) {
        settle_memory(Memory::refuted);
        return;
    }
    // With a GIL for each interpreter (3.12) there could be two of us.
    if (python.interpreter() != python.main_interpreter()) {
        return;
    }
    const NoCollection no_collection;
    const KeepException keep;
    const Compared result = compare_frames();
    if (result != Compared::unreadable) {
        settle_memory(result == Compared::equal ? Memory::proved : Memory::refuted);
    }
}

uint64_t python_site() {
    constexpr unsigned kDeepest = 8;
    prove_python_memory();
    const void* thread = thread_to_read();
    return thread == nullptr ? 0 : python_site_of(layout, thread, kDeepest);
}

PythonFrames::~PythonFrames() {
    if (count_ == 0) {
        return;
    }
    const KeepException keep;  // dropping the last reference may run code of its own
    for (size_t i = 0; i < count_; ++i) {
        python.drop(held_[i]);
    }
}

void PythonFrames::hold(void* object) {
    if (object != nullptr) {
        held_[count_++] = object;
    }
}

size_t PythonFrames::add_frame(void* code, long line, FieldValue* fields) {
    void* file = attribute(code, "co_filename");
    void* function = attribute(code, "co_qualname");  // 3.11
    if (function == nullptr) {
        function = attribute(code, "co_name");
    }
    fields[0] = text_field(Field::python_file, file);
    fields[1] = FieldValue::of(Field::python_line, static_cast<uint64_t>(line > 0 ? line : 0));
    fields[2] = text_field(Field::python_function, function);
    hold(file);
    hold(function);
    return 3;
}

FieldValue PythonFrames::own_text(Field field, const PythonText& text) {
    if (text.characters == nullptr) {
        return FieldValue::of(field, "?");
    }
    if (text.width == 0) {
        return FieldValue::of(field, text.characters, text.length);
    }
    char* begin = texts_ + used_;
    const size_t size = python_utf8(text, begin, sizeof texts_ - used_);
    if (size == 0) {
        return FieldValue::of(field, "?");
    }
    used_ += size;
    return FieldValue::of(field, begin, size);
}

size_t PythonFrames::collect_from_memory(FieldValue* fields) {
    const void* thread = thread_to_read();
    if (thread == nullptr) {
        return 0;
    }
    PythonStack stack(layout, python.types, thread);
    PythonFrame frame;
    PythonText files[kPythonFrames];
    size_t count = 0;
    for (size_t depth = 0; depth < kPythonFrames && stack.next(&frame); ++depth) {
        files[depth] = python_file_of(layout, python.types, frame.code);
        size_t same = 0;  // most frames are of few files
        while (files[same].characters != files[depth].characters) {
            ++same;
        }
        fields[count++] =
            same < depth ? fields[3 * same] : own_text(Field::python_file, files[depth]);
        fields[count++] = FieldValue::of(
            Field::python_line, static_cast<uint64_t>(python_line_of(layout, python.types, frame)));
        fields[count++] =
            own_text(Field::python_function, python_function_of(layout, python.types, frame.code));
    }
    // The end of the interpreter may have begun meanwhile.
    return python.is_finalizing() != 0 ? 0 : count;
}

size_t PythonFrames::collect(FieldValue* fields) {
    if (!holds_gil()) {
        return collect_from_memory(fields);
    }
    prove_python_memory();
    const NoCollection no_collection;
    const KeepException keep;
    size_t count = 0;
    void* frame = python.get_frame();
    for (size_t depth = 0; !is_none(frame) && depth < kPythonFrames; ++depth) {
        void* code = attribute(frame, "f_code");
        void* line = attribute(frame, "f_lineno");
        if (code != nullptr) {
            const long number = is_none(line) ? 0 : python.as_long(line);
            count += add_frame(code, number, fields + count);
        }
        drop(line);
        drop(code);
        void* outer = attribute(frame, "f_back");
        if (is_none(outer)) {
            drop(outer);
            break;
        }
        hold(outer);
        frame = outer;
    }
    return count;
}

size_t PythonFrames::collect_traceback(void* traceback, FieldValue* fields) {
    // A traceback is a list from the outside in; the innermost kPythonFrames are kept.
    void* chain[kPythonFrames] = {};
    long lines[kPythonFrames] = {};
    size_t length = 0;
    void* at = traceback;
    constexpr size_t kLongest = 4096;
    void* owned = nullptr;
    for (; !is_none(at) && length < kLongest; ++length) {
        void*& slot = chain[length % kPythonFrames];
        drop(slot);
        slot = attribute(at, "tb_frame");
        // The line is the traceback's: the frame itself may have moved on.
        void* line = attribute(at, "tb_lineno");
        lines[length % kPythonFrames] = is_none(line) ? 0 : python.as_long(line);
        drop(line);
        void* next = attribute(at, "tb_next");
        drop(owned);
        owned = next;
        at = next;
    }
    drop(owned);
    size_t count = 0;
    const size_t kept = length < kPythonFrames ? length : kPythonFrames;
    for (size_t i = 0; i < kept; ++i) {
        const size_t at_slot = (length - 1 - i) % kPythonFrames;
        void* code = attribute(chain[at_slot], "f_code");
        if (code != nullptr) {
            count += add_frame(code, lines[at_slot], fields + count);
        }
        drop(code);
    }
    for (void* frame : chain) {
        drop(frame);
    }
    return count;
}

bool ends_by_exception() {
    if (!holds_gil() || python.is_finalizing() == 0) {
        return false;
    }
    const KeepException keep;
    return !is_none(last_exception());
}

void note_last_exception() {
    if (exception_noted || session_state() != SessionState::open || !ends_by_exception()) {
        return;
    }
    const KeepException keep;
    void* exception = last_exception();
    exception_noted = true;
    constexpr uint64_t kDeepest = 8;
    void* owned = nullptr;
    for (uint64_t chain = 0; !is_none(exception) && chain < kDeepest; ++chain) {
        note_exception(exception, chain);
        void* earlier = python.cause(exception);
        if (is_none(earlier)) {
            drop(earlier);
            earlier = python.context(exception);
        }
        drop(owned);
        owned = earlier;
        exception = earlier;
    }
    drop(owned);
}

bool last_exception_noted() {
    return exception_noted;
}

void forget_last_exception() {
    exception_noted = false;
}

}  // namespace cudiag
