#include "shim/attempts.h"

#include <stddef.h>
#include <string.h>

namespace cudiag {
namespace {

constexpr size_t kSlots = 32;

struct Attempt {
    int32_t pid;    // 0: free
    int32_t error;  // errno of an exec that failed
    int32_t status;
    uint32_t count;  // places where it could not be started
    bool failed;
    char path[232];
};

Attempt attempts[kSlots];
uint32_t next = 0;  // the oldest is overwritten

const char* base_of(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash == nullptr ? path : slash + 1;
}

Attempt* newest_of(int32_t pid) {
    const uint32_t end = __atomic_load_n(&next, __ATOMIC_ACQUIRE);
    for (uint32_t back = 1; back <= kSlots && back <= end; ++back) {
        Attempt& attempt = attempts[(end - back) % kSlots];
        if (attempt.pid == pid) {
            return &attempt;
        }
    }
    return nullptr;
}

void keep_path(Attempt& attempt, const char* path) {
    const size_t length = strlen(path);
    const size_t kept = length < sizeof attempt.path ? length : sizeof attempt.path - 1;
    memcpy(attempt.path, path, kept);
    attempt.path[kept] = '\0';
}

Attempt* add(const char* path, int32_t pid) {
    const uint32_t at = __atomic_fetch_add(&next, 1, __ATOMIC_ACQ_REL);
    Attempt& attempt = attempts[at % kSlots];
    attempt = {};
    keep_path(attempt, path);
    attempt.pid = pid;
    return &attempt;
}

}  // namespace

void note_attempt(const char* path, int32_t pid) {
    Attempt* known = newest_of(pid);
    if (known != nullptr && strcmp(base_of(known->path), base_of(path)) == 0) {
        keep_path(*known, path);  // the next entry of PATH
        known->failed = false;
        known->error = 0;
        return;
    }
    (void)add(path, pid);
}

void note_failed_attempt(const char* path, int32_t pid, int error) {
    Attempt* known = newest_of(pid);
    if (known == nullptr || strcmp(base_of(known->path), base_of(path)) != 0) {
        known = add(path, pid);
    }
    ++known->count;
    known->failed = true;
    known->error = error;
}

void note_failed_child(int32_t pid, int status) {
    Attempt* known = newest_of(pid);
    if (known == nullptr) {
        known = add("", pid);
    }
    known->failed = true;
    known->status = status;
}

const char* attempted_by(int32_t pid) {
    const Attempt* known = newest_of(pid);
    return known == nullptr ? "" : known->path;
}

void take_failures(void (*each)(int32_t pid, const char* path, int error, int status,
                                uint64_t count)) {
    const uint32_t end = __atomic_load_n(&next, __ATOMIC_ACQUIRE);
    for (uint32_t back = end < kSlots ? end : kSlots; back > 0; --back) {
        Attempt& attempt = attempts[(end - back) % kSlots];
        if (attempt.pid != 0 && attempt.failed) {
            each(attempt.pid, attempt.path, attempt.error, attempt.status, attempt.count);
            attempt.failed = false;
        }
    }
}

}  // namespace cudiag
