// Puts back what a hook may have disturbed. RAII, no state of its own.
#pragma once

#include <errno.h>

namespace cudiag {

class KeepErrno {
  public:
    KeepErrno() : kept_{errno} {}

    ~KeepErrno() { errno = kept_; }

    KeepErrno(const KeepErrno&) = delete;
    KeepErrno& operator=(const KeepErrno&) = delete;

  private:
    int kept_;
};

}  // namespace cudiag
