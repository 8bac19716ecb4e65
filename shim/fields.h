// The fields of an entry to be; those that do not fit are left out. Some kilobytes: for calls that
// have failed, or took long.
#pragma once

#include <stddef.h>

#include "record/writer.h"
#include "shim/python.h"
#include "shim/session.h"

namespace cudiag {

class Fields {
  public:
    void add(FieldValue value) {
        if (count_ < kMostOwn) {
            values_[count_++] = value;
        }
    }

    void add_frames(PythonFrames& frames) { count_ += frames.collect(values_ + count_); }

    bool note(EntryKind kind) { return cudiag::note(kind, values_, count_); }

  private:
    static constexpr size_t kMostOwn = 48;
    FieldValue values_[kMostOwn + kPythonFields] = {};
    size_t count_ = 0;
};

}  // namespace cudiag
