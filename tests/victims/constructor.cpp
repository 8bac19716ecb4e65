// A library whose constructor does what -DDOES says: 1 throws, 2 jumps out of dlopen, 3 exits, 4
// aborts, 5 prints its backtrace, 6 opens a library that is there, one that is missing (and asks
// why), and throws nothing, 7 calls _exit.
#include <dlfcn.h>
#include <execinfo.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern "C" {
jmp_buf* way_out __attribute__((weak)) = nullptr;

const char* which() {
    return "constructor";
}
}

__attribute__((constructor)) static void construct() {
    if (DOES == 1) {
        throw 42;
    } else if (DOES == 2) {
        longjmp(*way_out, 1);
    } else if (DOES == 3) {
        puts("constructor exits");
        exit(6);
    } else if (DOES == 4) {
        fflush(stdout);
        abort();
    } else if (DOES == 5) {
        void* frames[64];
        const int count = backtrace(frames, 64);
        char** names = backtrace_symbols(frames, count);
        for (int i = 0; names != nullptr && i < count; ++i) {
            char place[256] =
                "";  // module and function; offsets and addresses differ from run to run
            puts(sscanf(names[i], "%255[^+)]", place) == 1 ? place : "?");
        }
        free(names);
    } else if (DOES == 6) {
        puts(dlopen("libm.so.6", RTLD_NOW) != nullptr ? "inner there" : "inner null");
        puts(dlopen("/absent/inner.so", RTLD_NOW) != nullptr ? "inner there" : "inner null");
        puts(dlerror());
    } else if (DOES == 7) {
        fflush(stdout);
        _exit(8);
    }
}
