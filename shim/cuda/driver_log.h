// The driver's own words: from CUDA 12.9 on it says in plain English why it refused a call
// (cuLogsRegisterCallback, cuda.h).
#pragma once

namespace cudiag {

// Asks the driver to tell us each line of its log from now on; once in a process. Each becomes an
// entry of the recording, if one is open.
void listen_to_driver();

// While one lives, this thread asks the driver for the shim itself: what it logs of that is not the
// program's.
class Asking {
  public:
    Asking();
    ~Asking();
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;
};

}  // namespace cudiag
