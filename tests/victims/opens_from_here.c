/* A library whose own code calls dlopen: the caller's DT_RPATH, DT_RUNPATH and $ORIGIN count. */
#include <dlfcn.h>

const char* which(void) {
    return "opens_from_here";
}

void* open_from_here(const char* name, int mode) {
    void* volatile handle = dlopen(name, mode); /* not a tail call: the call is made from here */
    return handle;
}
