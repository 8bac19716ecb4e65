/* Called by ctypes, which lets go of the GIL: loads what is missing, many times over, and asks why. */
#include <dlfcn.h>
#include <stddef.h>

int open_without_gil(const char* name) {
    int told = 0;
    for (int i = 0; i < 200; ++i) {
        (void)dlopen("libm.so.6", RTLD_NOW);
    }
    if (dlopen(name, RTLD_NOW) == NULL) {
        told = dlerror() != NULL;
    }
    return told;
}
