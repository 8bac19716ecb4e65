#include "shim/forks.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/keep_errno.h"

// What pthread_atfork is made of in glibc, whose own copy is linked statically. Absent from musl,
// where the wiped page has to do.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): glibc's name
extern "C" int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(),
                                 void* library) __attribute__((weak));

namespace cudiag {
namespace {

constexpr size_t kPage = 4096;

int32_t owner = 0;  // pid
bool forked = false;
void (*begin)() = nullptr;
// A page that the kernel clears in a fork child (MADV_WIPEONFORK, Linux 4.14) and leaves alone in a
// vfork child. It catches the forks that atfork handlers do not see (_Fork, a raw clone). nullptr
// on an older kernel: such a child is then taken for a vfork child, and records nothing.
unsigned char* lives_here = nullptr;

int32_t own_pid() {
    return static_cast<int32_t>(syscall(SYS_getpid));
}

void take_over() {
    const KeepErrno keep;
    owner = own_pid();
    forked = true;
    if (lives_here != nullptr) {
        *lives_here = 1;
    }
    begin();
}

}  // namespace

void watch_forks(void (*begin_afresh)()) {
    owner = own_pid();
    begin = begin_afresh;
    void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) {
        if (madvise(page, kPage, MADV_WIPEONFORK) == 0) {
            lives_here = static_cast<unsigned char*>(page);
            *lives_here = 1;
        } else {
            (void)munmap(page, kPage);
        }
    }
    if (__register_atfork != nullptr) {
        (void)__register_atfork(nullptr, nullptr, take_over, nullptr);
    }
}

void check_fork() {
    if (lives_here != nullptr && *lives_here == 0) {
        take_over();
    }
}

bool in_vfork_child() {
    check_fork();
    return owner != 0 && own_pid() != owner;
}

bool is_fork_child() {
    return forked;
}

}  // namespace cudiag
