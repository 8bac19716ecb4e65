// dlopens argv[1], whose constructor may throw, jump or end the process; says how control came
// back. A second argument is opened afterwards.
#include <dlfcn.h>
#include <setjmp.h>
#include <stdio.h>

extern "C" {
jmp_buf out;
jmp_buf* way_out = &out;
}

// g++ takes dlopen for nothrow; through a pointer to a function that may throw it does not.
static void* (*volatile open_it)(const char*, int) = dlopen;

int main(int count, char** arguments) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    if (setjmp(out) == 0) {
        try {
            void* handle = open_it(arguments[1], RTLD_NOW);
            puts(handle != nullptr ? "outer there" : "outer null");
            if (handle == nullptr) puts(dlerror());
        } catch (int thrown) {
            printf("caught %d\n", thrown);
        }
    } else {
        puts("jumped out");
    }
    if (count > 2) {
        puts(open_it(arguments[2], RTLD_NOW) != nullptr ? "second there" : dlerror());
    }
    return 3;
}
