// System calls that touch neither errno nor any other thread-local storage, nor the procedure
// linkage table: for a process that shares its parent's memory and thread pointer while the parent
// runs on.
#pragma once

namespace cudiag {

// The kernel's answer: a result, or minus an errno.
inline long raw_call(long number, long a = 0, long b = 0, long c = 0, long d = 0) {
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
#else
#error "no system calls for this architecture"
#endif
}

}  // namespace cudiag

// clone(flags) on a stack of its own, where `function` is called and its result becomes the exit
// status; the child's pid, or minus an errno (spawn.S). glibc's clone writes to the thread
// descriptor, which the child would share (2.17 to 2.24: the thread's cached id).
extern "C" long cudiag_clone(long flags, void* stack_end, int (*function)(void*), void* argument);
