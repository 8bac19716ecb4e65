#include "shim/python_memory.h"

#include <string.h>

#include <initializer_list>

namespace cudiag {
namespace {

// The same in all 64-bit builds from 3.8 to 3.14 that have a GIL and not Py_TRACE_REFS, which
// python.cpp makes sure of: Include/object.h, bytesobject.h and cpython/unicodeobject.h.
constexpr size_t kType = 8;         // PyObject.ob_type
constexpr size_t kSize = 16;        // PyVarObject.ob_size
constexpr size_t kBytes = 32;       // PyBytesObject.ob_sval
constexpr size_t kTextLength = 16;  // PyASCIIObject.length
constexpr size_t kTextState = 32;   // PyASCIIObject.state

constexpr unsigned kUnit = 2;  // sizeof(_Py_CODEUNIT)
constexpr unsigned kPointer = 8;
constexpr uintptr_t kTag = 7;                    // _PyStackRef's tags (3.14) are in these bits
constexpr int64_t kMostCode = int64_t{1} << 28;  // bytes of instructions or of a line table
constexpr unsigned kMostSteps = 4096;

// enum _frameowner: a generator's frame, and from here on frames of the interpreter's own (3.12:
// FRAME_OWNED_BY_CSTACK; 3.14: FRAME_OWNED_BY_INTERPRETER and FRAME_OWNED_BY_CSTACK; 3.11 has none)
constexpr uint8_t kOfGenerator = 1;
constexpr uint8_t kOfInterpreter = 3;

// PyCodeObject ends with _co_firsttraceable, co_extra and co_code_adaptive (3.11 to 3.14:
// Include/cpython/code.h, _PyCode_DEF).
constexpr size_t kFirstTraceableBeforeCode = 16;

constexpr uint16_t kNone = PythonLayout::kNoOffset;

struct Release {
    const char* version;
    PythonLayout layout;
};

// By offsetof with the headers of CPython 3.8.18, 3.9.18, 3.10.13, 3.11.7 and 3.12.1:
// Include/cpython/pystate.h, frameobject.h and internal/pycore_frame.h, code.h, unicodeobject.h.
constexpr Release kReleases[] = {
    {"3.8.",
     {24, kNone, 32, 24, 104, kNone, 104, 112, 120, 40, kNone, 48, 72, PythonLines::increments}},
    {"3.9.",
     {24, kNone, 32, 24, 104, kNone, 104, 112, 120, 40, kNone, 48, 72, PythonLines::increments}},
    {"3.10.",
     {24, kNone, 32, 24, 96, kNone, 104, 112, 120, 40, kNone, 48, 72, PythonLines::ranges}},
    {"3.11.", {56, 8, 32, 48, 56, 69, 112, 128, 136, 72, 184, 48, 72, PythonLines::locations}},
    {"3.12.", {56, 0, 0, 8, 56, 70, 112, 128, 136, 68, 192, 40, 56, PythonLines::locations}},
};

// Where _Py_DebugOffsets has what we need, in words of 64 bits: 3.13.0's
// Include/internal/pycore_runtime.h and 3.14.0's pycore_debug_offsets.h.
struct Words {
    uint64_t version;  // PY_VERSION_HEX >> 16
    uint8_t current_frame;
    uint8_t previous, executable, instr_ptr, owner;
    uint8_t filename, qualname, linetable, firstlineno, co_code_adaptive;
    uint8_t ob_type, bytes_size, bytes_sval;
    uint8_t unicode_state, unicode_length, asciiobject_size;
};

constexpr Words kWords[] = {
    {0x030d, 23, 29, 30, 31, 33, 35, 37, 38, 39, 43, 45, 65, 66, 68, 69, 70},
    {0x030e, 26, 32, 33, 34, 36, 40, 42, 43, 44, 48, 51, 75, 76, 78, 79, 80},
};

template <class T>
T read(const void* from, size_t offset) {
    T value;
    memcpy(&value, static_cast<const char*>(from) + offset, sizeof value);
    return value;
}

bool is_pointer(const void* pointer) {
    constexpr uintptr_t kFirstPage = 4096;
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    return address >= kFirstPage && address % kPointer == 0;
}

const void* pointer_at(const void* from, size_t offset) {
    const void* pointer = read<const void*>(from, offset);
    return is_pointer(pointer) ? pointer : nullptr;
}

// f_executable is tagged from 3.14 on; without a tag this changes nothing.
const void* code_at(const void* frame, size_t offset) {
    const void* tagged = read<const void*>(frame, offset);
    const void* pointer =
        static_cast<const char*>(tagged) - (reinterpret_cast<uintptr_t>(tagged) & kTag);
    return is_pointer(pointer) ? pointer : nullptr;
}

const void* innermost(const PythonLayout& layout, const void* thread) {
    const void* frame = pointer_at(thread, layout.thread_frame);
    if (layout.by_way_of != kNone) {
        frame = frame == nullptr ? nullptr : pointer_at(frame, layout.by_way_of);
    }
    return frame;
}

// Bytes of a line table, front to back; an end that comes too soon reads as 0, which begins no
// entry.
class Cursor {
  public:
    Cursor(const uint8_t* begin, size_t size) : at_(begin), end_(begin + size) {}

    bool at_end() const { return at_ == end_; }

    uint8_t byte() { return at_ == end_ ? uint8_t{0} : *at_++; }

    void skip(size_t count) { at_ = count < static_cast<size_t>(end_ - at_) ? at_ + count : end_; }

    // 6 bits a byte, the lowest first, bit 6: more follow.
    uint64_t varint() {
        uint8_t now = byte();
        uint64_t value = now & 0x3fU;
        for (unsigned shift = 6; (now & 0x40U) != 0; shift += 6) {
            now = byte();
            value |= shift < 60 ? uint64_t{now & 0x3fU} << shift : 0;
        }
        return value;
    }

    // The sign is the lowest bit. Lines are ints; more would only overflow.
    long signed_varint() {
        const uint64_t value = varint();
        const auto magnitude = static_cast<long>((value >> 1) & 0x7fffffffU);
        return (value & 1U) != 0 ? -magnitude : magnitude;
    }

  private:
    const uint8_t* at_;
    const uint8_t* end_;
};

// PyCode_Addr2Line of 3.9 (Objects/codeobject.c).
long line_by_increments(Cursor table, long line, int64_t offset) {
    int64_t address = 0;
    while (!table.at_end()) {
        address += table.byte();
        if (address > offset) {
            break;
        }
        line += static_cast<int8_t>(table.byte());
    }
    return line;
}

// PyLineTable_NextAddressRange of 3.10 (Objects/codeobject.c).
long line_by_ranges(Cursor table, long line, int64_t offset) {
    constexpr int8_t kNoLine = -128;
    int64_t end = 0;
    while (!table.at_end()) {
        end += table.byte();
        const auto step = static_cast<int8_t>(table.byte());
        line += step == kNoLine ? 0 : step;
        if (offset < end) {
            return step == kNoLine ? 0 : line;
        }
    }
    return 0;
}

// Objects/locations.md of 3.11, and get_line_delta in Objects/codeobject.c.
long line_by_locations(Cursor table, long line, int64_t offset) {
    enum Code : unsigned { one_line = 10, no_columns = 13, all = 14, none = 15 };

    int64_t end = 0;
    while (!table.at_end()) {
        const unsigned first = table.byte();
        if ((first & 0x80U) == 0) {
            return 0;
        }
        const unsigned code = (first >> 3) & 0xfU;
        end += int64_t{(first & 7U) + 1} * kUnit;
        if (code == all) {
            line += table.signed_varint();
            (void)table.varint();
            (void)table.varint();
            (void)table.varint();
        } else if (code == no_columns) {
            line += table.signed_varint();
        } else if (code >= one_line && code < no_columns) {
            line += static_cast<long>(code - one_line);
            table.skip(2);
        } else if (code < one_line) {
            table.skip(1);
        }
        if (offset < end) {
            return code == none ? 0 : line;
        }
    }
    return 0;
}

uint32_t character(const PythonText& text, size_t index) {
    switch (text.width) {
        case 2:
            return read<uint16_t>(text.characters, index * 2);
        case 4:
            return read<uint32_t>(text.characters, index * 4);
        default:
            return read<uint8_t>(text.characters, index);
    }
}

constexpr size_t kLongestCharacter = 4;

size_t encode(uint32_t c, char (&bytes)[kLongestCharacter]) {
    const bool surrogate = c >= 0xd800U && c < 0xe000U;
    if (c < 0x80U || surrogate || c > 0x10ffffU) {
        bytes[0] = c < 0x80U ? static_cast<char>(c) : '?';
        return 1;
    }
    const size_t size = c < 0x800U ? 2 : (c < 0x10000U ? 3 : 4);
    for (size_t i = size - 1; i > 0; --i) {
        bytes[i] = static_cast<char>(0x80U | (c & 0x3fU));
        c >>= 6;
    }
    constexpr uint32_t kFirst[] = {0, 0, 0xc0U, 0xe0U, 0xf0U};
    bytes[0] = static_cast<char>(kFirst[size] | c);
    return size;
}

// state: interned 2 bits, kind 3, compact 1, ascii 1 (3.8 to 3.14).
PythonText text_at(const PythonLayout& layout, const PythonTypes& types, const void* code,
                   size_t offset) {
    constexpr size_t kLongest = 4096;
    const void* object = pointer_at(code, offset);
    if (object == nullptr || read<const void*>(object, kType) != types.text) {
        return {};
    }
    const auto state = read<uint32_t>(object, kTextState);
    const auto length = read<uint64_t>(object, kTextLength);
    const unsigned kind = (state >> 2) & 7U;
    const bool compact = ((state >> 5) & 1U) != 0;
    const bool ascii = ((state >> 6) & 1U) != 0;
    if (!compact || (kind != 1 && kind != 2 && kind != 4) || length > kLongest) {
        return {};
    }
    return {static_cast<const char*>(object) + (ascii ? layout.ascii_text : layout.other_text),
            length, ascii ? 0 : kind};
}

}  // namespace

bool python_layout_of(const char* version, PythonLayout* layout) {
    for (const Release& release : kReleases) {
        const size_t length = strlen(release.version);
        if (strncmp(version, release.version, length) != 0) {
            continue;
        }
        // "3.12.1 (" or "3.12.1+ (", but not "3.12.0rc1 (": a layout is settled with the release.
        const char* at = version + length;
        while (*at >= '0' && *at <= '9') {
            ++at;
        }
        *layout = release.layout;
        return *at == ' ' || *at == '+';
    }
    return false;
}

bool python_layout_at(const void* runtime, PythonLayout* layout) {
    constexpr char kCookie[] = "xdebugpy";
    constexpr size_t kVersion = 8;
    constexpr size_t kWithoutGil = 16;
    constexpr uint64_t kReleaseLevel = 0xf0;
    if (runtime == nullptr || memcmp(runtime, kCookie, strlen(kCookie)) != 0 ||
        read<uint64_t>(runtime, kWithoutGil) != 0) {
        return false;
    }
    const auto version = read<uint64_t>(runtime, kVersion);
    for (const Words& words : kWords) {
        if (version >> 16 != words.version || (version & kReleaseLevel) != kReleaseLevel) {
            continue;
        }
        bool fits = true;
        const auto offset = [runtime, &fits](uint8_t word) {
            constexpr uint64_t kMost = 4096;
            const auto value = read<uint64_t>(runtime, size_t{8} * word);
            fits = fits && value < kMost;
            return static_cast<uint16_t>(value);
        };
        const uint16_t ascii_text = offset(words.asciiobject_size);
        *layout = {offset(words.current_frame),
                   kNone,
                   offset(words.executable),
                   offset(words.previous),
                   offset(words.instr_ptr),
                   offset(words.owner),
                   offset(words.filename),
                   offset(words.qualname),
                   offset(words.linetable),
                   offset(words.firstlineno),
                   offset(words.co_code_adaptive),
                   ascii_text,
                   static_cast<uint16_t>(ascii_text + 16),  // utf8_length, utf8
                   PythonLines::locations};
        return fits && offset(words.ob_type) == kType && offset(words.bytes_size) == kSize &&
               offset(words.bytes_sval) == kBytes && offset(words.unicode_state) == kTextState &&
               offset(words.unicode_length) == kTextLength &&
               layout->code_begin > kFirstTraceableBeforeCode;
    }
    return false;
}

PythonStack::PythonStack(const PythonLayout& layout, const PythonTypes& types, const void* thread)
    : layout_(layout), types_(types), at_(innermost(layout, thread)) {}

const void* PythonStack::behind(const void* frame) const {
    return pointer_at(frame, layout_.frame_back);
}

const void* PythonStack::code_of(const void* frame) const {
    return code_at(frame, layout_.frame_code);
}

bool PythonStack::is_code(const void* object) const {
    return object != nullptr && read<const void*>(object, kType) == types_.code;
}

int64_t PythonStack::offset_in(const void* frame, const void* code) const {
    if (layout_.code_begin == kNone) {
        const int64_t index = read<int32_t>(frame, layout_.frame_at);
        return layout_.lines == PythonLines::ranges ? index * kUnit : index;
    }
    return read<int64_t>(frame, layout_.frame_at) -
           static_cast<int64_t>(reinterpret_cast<uintptr_t>(code) + layout_.code_begin);
}

// _PyFrame_IsIncomplete (Include/internal/pycore_frame.h, 3.11 to 3.13; pycore_interpframe.h,
// 3.14).
bool PythonStack::passes_over(const void* frame) const {
    if (layout_.frame_owner == kNone) {
        return false;
    }
    const auto owner = read<uint8_t>(frame, layout_.frame_owner);
    if (owner >= kOfInterpreter) {
        return true;
    }
    const void* code = code_of(frame);
    return owner != kOfGenerator && is_code(code) &&
           offset_in(frame, code) <
               int64_t{read<int32_t>(code, layout_.code_begin - kFirstTraceableBeforeCode)} * kUnit;
}

bool PythonStack::next(PythonFrame* frame) {
    for (; at_ != nullptr && steps_ < kMostSteps; ++steps_) {
        const void* here = at_;
        if (types_.frame != nullptr && read<const void*>(here, kType) != types_.frame) {
            break;
        }
        if (passes_over(here)) {
            at_ = behind(here);
            continue;
        }
        const void* code = code_of(here);
        if (!is_code(code)) {
            break;
        }
        const int64_t offset = offset_in(here, code);
        const int64_t end =
            layout_.code_begin == kNone ? kMostCode : read<int64_t>(code, kSize) * kUnit;
        // One unit before the beginning: nothing was run yet.
        if (offset < -int64_t{kUnit} || offset >= end) {
            break;
        }
        at_ = behind(here);
        ++steps_;
        *frame = {here, code, offset};
        return true;
    }
    at_ = nullptr;
    return false;
}

uint64_t python_site_of(const PythonLayout& layout, const void* thread, unsigned deepest) {
    constexpr uint64_t kFactor = 0x9e3779b97f4a7c15U;  // 2^64 by the golden ratio
    constexpr unsigned kMostPassedOver = 32;
    uint64_t site = 0;
    unsigned seen = 0;
    const void* frame = innermost(layout, thread);
    for (unsigned step = 0; frame != nullptr && seen < deepest && step < kMostPassedOver; ++step) {
        if (layout.frame_owner == kNone ||
            read<uint8_t>(frame, layout.frame_owner) < kOfInterpreter) {
            const auto code = reinterpret_cast<uintptr_t>(code_at(frame, layout.frame_code));
            const uint64_t at = layout.code_begin == kNone
                                    ? read<uint32_t>(frame, layout.frame_at)
                                    : read<uint64_t>(frame, layout.frame_at) - code;
            for (const uint64_t word : {uint64_t{code}, at}) {
                site = (site ^ word) * kFactor;
                site ^= site >> 32;
            }
            ++seen;
        }
        frame = pointer_at(frame, layout.frame_back);
    }
    return seen == 0 ? 0 : (site == 0 ? 1 : site);
}

long python_line_in(PythonLines form, const uint8_t* table, size_t size, long first_line,
                    int64_t offset) {
    if (offset < 0) {
        return first_line;
    }
    const Cursor cursor(table, size);
    switch (form) {
        case PythonLines::increments:
            return line_by_increments(cursor, first_line, offset);
        case PythonLines::ranges:
            return line_by_ranges(cursor, first_line, offset);
        default:
            return line_by_locations(cursor, first_line, offset);
    }
}

long python_line_of(const PythonLayout& layout, const PythonTypes& types,
                    const PythonFrame& frame) {
    const void* table = pointer_at(frame.code, layout.code_lines);
    if (table == nullptr || read<const void*>(table, kType) != types.bytes) {
        return 0;
    }
    const auto size = read<int64_t>(table, kSize);
    if (size < 0 || size > kMostCode) {
        return 0;
    }
    const long line = python_line_in(
        layout.lines, static_cast<const uint8_t*>(table) + kBytes, static_cast<size_t>(size),
        read<int32_t>(frame.code, layout.code_first_line), frame.offset);
    return line > 0 ? line : 0;
}

PythonText python_file_of(const PythonLayout& layout, const PythonTypes& types, const void* code) {
    return text_at(layout, types, code, layout.code_file);
}

PythonText python_function_of(const PythonLayout& layout, const PythonTypes& types,
                              const void* code) {
    return text_at(layout, types, code, layout.code_function);
}

size_t python_utf8(const PythonText& text, char* bytes, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < text.length; ++i) {
        char encoded[kLongestCharacter];
        const size_t count = encode(character(text, i), encoded);
        if (size - used < count) {
            return 0;
        }
        memcpy(bytes + used, encoded, count);
        used += count;
    }
    return used;
}

bool same_python_text(const PythonText& text, const char* utf8, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < text.length; ++i) {
        char encoded[kLongestCharacter];
        const size_t count = encode(character(text, i), encoded);
        if (size - used < count || memcmp(utf8 + used, encoded, count) != 0) {
            return false;
        }
        used += count;
    }
    return used == size;
}

}  // namespace cudiag
