#include "shim/python.h"

#include <stdint.h>
#include <string.h>

#include <initializer_list>

#include "shim/originals.h"
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
    if (python_found) {
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
    python_found = python.complete();
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

size_t PythonFrames::collect(FieldValue* fields) {
    if (!holds_gil()) {
        return 0;
    }
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
