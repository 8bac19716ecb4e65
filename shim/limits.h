// The limits that a process runs under, and how often the kernel enforced them: memory and pids
// cgroups (v1 and v2), RLIMIT_AS, RLIMIT_NPROC.
#pragma once

#include <stdint.h>

#include "record/writer.h"

namespace cudiag {

inline constexpr size_t kLimitFields = 9;

// As fields of an entry; text points into this object. Reads /proc/self/cgroup and some files below
// /sys/fs/cgroup, where they are (Linux, Documentation/admin-guide/cgroup-v1/memory.rst and
// cgroup-v2.rst); no allocation; async-signal-safe.
class Limits {
  public:
    Limits();

    // Fills at most kLimitFields fields, those that are known; the count.
    size_t fields(FieldValue* to) const;

  private:
    void read_memory(int version, const char* mount, const char* path);
    void read_processes(const char* mount, const char* path);

    char cgroup_[512] = "";
    int version_ = 0;
    uint64_t memory_limit_ = 0, memory_peak_ = 0, oom_kills_ = 0, process_limit_ = 0, refused_ = 0,
             mapped_limit_ = 0, user_process_limit_ = 0;
    bool knows_kills_ = false;
};

// VmHWM and VmPeak of this process in bytes (proc(5)), 0 where unknown.
void read_peaks(uint64_t* memory, uint64_t* mapped);

}  // namespace cudiag
