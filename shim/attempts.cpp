#include "shim/attempts.h"

#include <stddef.h>
#include <string.h>

#include "shim/build_tools.h"
#include "shim/text.h"

namespace cudiag {
namespace {

constexpr size_t kSlots = 32;

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

// What ninja was asked for tells whether it was to build at all.
void keep_arguments(Attempt& attempt, char* const* arguments) {
    if (arguments == nullptr || build_role(base_of(attempt.path)) != BuildRole::coordinator) {
        return;
    }
    Text text{attempt.arguments, sizeof attempt.arguments};
    for (size_t i = 0; arguments[i] != nullptr && !text.cut(); ++i) {
        text.add(i == 0 ? "" : " ").add(arguments[i]);
    }
}

bool matters(const Attempt& attempt) {
    return attempt.pid != 0 &&
           (attempt.failed || build_role(base_of(attempt.path)) == BuildRole::coordinator);
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

void note_attempt(const char* path, char* const* arguments, int32_t pid) {
    Attempt* attempt = newest_of(pid);
    if (attempt != nullptr && strcmp(base_of(attempt->path), base_of(path)) == 0) {
        keep_path(*attempt, path);  // the next entry of PATH
        attempt->failed = false;
        attempt->error = 0;
    } else {
        attempt = add(path, pid);
    }
    keep_arguments(*attempt, arguments);
}

void note_failed_attempt(const char* path, int32_t pid, int error) {
    Attempt* known = newest_of(pid);
    if (known == nullptr || strcmp(base_of(known->path), base_of(path)) != 0) {
        known = add(path, pid);
    }
    ++known->places;
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

void take_attempts(void (*each)(const Attempt& attempt)) {
    const uint32_t end = __atomic_load_n(&next, __ATOMIC_ACQUIRE);
    for (uint32_t back = end < kSlots ? end : kSlots; back > 0; --back) {
        Attempt& attempt = attempts[(end - back) % kSlots];
        if (matters(attempt)) {
            each(attempt);
            attempt.pid = 0;
        }
    }
}

}  // namespace cudiag
