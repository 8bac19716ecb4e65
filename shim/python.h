// Where in the user's Python a thing happened, by the interpreter's own C API, found in the
// process's symbols. Imports nothing, runs no Python code, and asks only while this thread holds
// the GIL.
#pragma once

#include <stddef.h>

#include "record/writer.h"

namespace cudiag {

inline constexpr size_t kPythonFrames = 24;
inline constexpr size_t kPythonFields = 3 * kPythonFrames;

// Frames of the calling thread as fields; the texts belong to Python objects that are held until
// this is destroyed.
class PythonFrames {
  public:
    PythonFrames() = default;
    ~PythonFrames();
    PythonFrames(const PythonFrames&) = delete;
    PythonFrames& operator=(const PythonFrames&) = delete;

    // Fills at most kPythonFields fields, the innermost frame first; the count, 0 without Python or
    // without its GIL.
    size_t collect(FieldValue* fields);

    // The same of a traceback (traceback objects run from the outermost frame in).
    size_t collect_traceback(void* traceback, FieldValue* fields);

  private:
    size_t add_frame(void* code, long line, FieldValue* fields);
    void hold(void* object);

    void* held_[4 * kPythonFrames] = {};
    size_t count_ = 0;
};

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
