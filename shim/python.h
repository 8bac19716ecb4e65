// Where in the user's Python a thing happened. While this thread holds the GIL, by the
// interpreter's own C API, found in the process's symbols: imports nothing, runs no Python code.
// Without the GIL, from the memory of this thread's frames (python_memory.h), and only if that once
// gave the same as the API did.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "record/writer.h"
#include "shim/python_memory.h"

namespace cudiag {

inline constexpr size_t kPythonFrames = 24;
inline constexpr size_t kPythonFields = 3 * kPythonFrames;

// Frames of the calling thread as fields. The texts belong to Python objects that are held until
// this is destroyed (by reference with the GIL; by the call that this thread is in without), or to
// this.
class PythonFrames {
  public:
    PythonFrames() {}  // NOLINT(modernize-use-equals-default): a union is left as it is

    ~PythonFrames();
    PythonFrames(const PythonFrames&) = delete;
    PythonFrames& operator=(const PythonFrames&) = delete;

    // Fills at most kPythonFields fields, the innermost frame first; the count, 0 without Python.
    // Valid at any time. Without the GIL there are none if this thread is in no call from Python,
    // nothing was proved yet (prove_python_memory), the interpreter is being torn down or there are
    // sub-interpreters. A text that cannot be had so is "?".
    size_t collect(FieldValue* fields);

    // The same of a traceback (traceback objects run from the outermost frame in).
    size_t collect_traceback(void* traceback, FieldValue* fields);

  private:
    size_t add_frame(void* code, long line, FieldValue* fields);
    void hold(void* object);
    size_t collect_from_memory(FieldValue* fields);
    FieldValue own_text(Field field, const PythonText& text);

    // One of them: what is held with the GIL, or what was put into UTF-8 without.
    union {
        void* held_[4 * kPythonFrames];
        char texts_[sizeof(void*) * 8 * kPythonFrames];
    };

    size_t count_ = 0;
    size_t used_ = 0;
};

// Compares, once in a process, what the memory of this thread's frames and what the API tell of
// them: equal, and frames are known without the GIL from now on; different, and never. For moments
// that may well have the GIL, before frames are needed: does nothing without it, where there are
// not two frames to compare, and when it is decided. Costs a load then, some 20 us the first time.
// `look`: there may be a Python that nobody asked for yet; walks the loaded objects if there is
// none.
enum class LookForPython : bool { no, yes };
void prove_python_memory(LookForPython look = LookForPython::no);

// What tells this place in the program from others: 64 bits of the code and the instruction of up
// to 8 innermost frames, the same for each call from there in this process. 0 if it is not known,
// as collect() without the GIL. No text is looked at; 25 to 70 ns, with or without the GIL.
uint64_t python_site();

// Notes the exception that ended the interpreter (sys.last_exc or sys.last_value) and those that it
// came from, if there is one, the interpreter is being torn down and a recording is open. Once per
// process.
void note_last_exception();
bool last_exception_noted();

// Is the interpreter being torn down after an exception that nobody caught? Cheap where there is no
// Python; on its main thread only.
bool ends_by_exception();

// In a fork child: it will end by an exception of its own.
void forget_last_exception();

}  // namespace cudiag
