// CPython's frames, read from its memory: no call into the interpreter, no reference counted, no
// lock, nothing written. For a thread that is inside a call from Python: its frames, the code that
// they hold and the texts of that code stay as they are until it returns, GIL or not.
//
// Pure functions of memory and a layout; python.cpp knows the process and decides when they are to
// be trusted.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace cudiag {

// The three forms of co_lnotab and co_linetable.
enum class PythonLines : uint8_t {
    increments,  // 3.8, 3.9: Objects/lnotab_notes.txt
    ranges,      // 3.10: the same file there (PEP 626)
    locations,   // 3.11 on: Objects/locations.md (PEP 657)
};

// Offsets in bytes of one CPython, 64-bit, with a GIL. kNoOffset: it has no such field.
struct PythonLayout {
    static constexpr uint16_t kNoOffset = 0xffff;
    // PyThreadState: the innermost frame, or what points to it at `by_way_of`.
    uint16_t thread_frame;
    uint16_t by_way_of;  // _PyCFrame.current_frame (3.11, 3.12)
    // PyFrameObject (to 3.10) or _PyInterpreterFrame.
    uint16_t frame_code;
    uint16_t frame_back;
    uint16_t frame_at;     // f_lasti, an int (to 3.10), or prev_instr or instr_ptr, a pointer
    uint16_t frame_owner;  // 3.11 on
    // PyCodeObject.
    uint16_t code_file;
    uint16_t code_function;
    uint16_t code_lines;
    uint16_t code_first_line;
    uint16_t code_begin;  // of the instructions (3.11 on)
    // sizeof(PyASCIIObject), sizeof(PyCompactUnicodeObject).
    uint16_t ascii_text;
    uint16_t other_text;
    PythonLines lines;
};

// Type objects of the process, by which what a pointer leads to is recognised.
struct PythonTypes {
    const void* code;
    const void* text;
    const void* bytes;
    const void* frame;  // nullptr: frames are no objects (3.11 on)
};

// The layout of the release that Py_GetVersion names so ("3.12.1 (main, ..."), to 3.12; false if it
// is not known, or no release.
bool python_layout_of(const char* version, PythonLayout* layout);

// The layout that _PyRuntime itself begins with, from 3.13 on; false if there is none, it is of
// another version than 3.13 or 3.14, or of a build without a GIL.
bool python_layout_at(const void* runtime, PythonLayout* layout);

struct PythonFrame {
    const void* frame;
    const void* code;
    int64_t offset;  // of the instruction, in bytes
};

// The complete frames of a thread, the innermost first: those that CPython's own traceback shows.
class PythonStack {
  public:
    PythonStack(const PythonLayout& layout, const PythonTypes& types, const void* thread);

    // The next frame; false at the end, where something is not what it should be, and after a
    // bounded number of steps.
    bool next(PythonFrame* frame);

    // For a first look at memory that is not trusted yet: where next() looks next, and whether it
    // would pass over a frame there.
    const void* position() const { return at_; }

    bool passes_over(const void* frame) const;
    const void* behind(const void* frame) const;
    const void* code_of(const void* frame) const;

  private:
    bool is_code(const void* object) const;
    int64_t offset_in(const void* frame, const void* code) const;

    const PythonLayout& layout_;
    const PythonTypes& types_;
    const void* at_ = nullptr;
    unsigned steps_ = 0;
};

// 64 bits of the frames up to `deepest`, without looking at their code; 0 if there are none.
uint64_t python_site_of(const PythonLayout& layout, const void* thread, unsigned deepest);

// The line of a frame's instruction, 0 if it has none.
long python_line_of(const PythonLayout& layout, const PythonTypes& types, const PythonFrame& frame);

// The same of a table's bytes (0 if it has no line, or the table is broken).
long python_line_in(PythonLines form, const uint8_t* table, size_t size, long first_line,
                    int64_t offset);

// A str as it lies in memory. Its cached UTF-8 is not used: another thread may be writing it.
struct PythonText {
    const void* characters = nullptr;  // nullptr: not a plain str
    size_t length = 0;                 // in characters
    unsigned width = 0;                // bytes a character; 0: ASCII, which is UTF-8 already
};

PythonText python_file_of(const PythonLayout& layout, const PythonTypes& types, const void* code);
PythonText python_function_of(const PythonLayout& layout, const PythonTypes& types,
                              const void* code);

// Writes a text as UTF-8, without a final NUL, "?" for a lone surrogate; the size, or 0 if it does
// not fit.
size_t python_utf8(const PythonText& text, char* bytes, size_t size);

// Is it this UTF-8?
bool same_python_text(const PythonText& text, const char* utf8, size_t size);

}  // namespace cudiag
