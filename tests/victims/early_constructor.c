/* A library that the program needs: its constructor runs before the shim's own, loads what is missing, and asks why. */
#include <dlfcn.h>
#include <stdio.h>

int early_is_there = 1;

__attribute__((constructor)) static void construct(void) {
    const void* handle = dlopen("/absent/early.so", RTLD_NOW);
    const char* text = dlerror();
    printf("%d %s\n", handle == NULL, text != NULL ? text : "(none)");
}
