/* Opens libcuda.so.1 and calls cuInit(7), as cudart does. */
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
    int (*init)(unsigned) = NULL;
    if (driver != NULL) *(void**)&init = dlsym(driver, "cuInit");
    printf("%s\n", init == NULL ? "no cuInit" : init(7) == 7 ? "cuInit of who stands in" : "another cuInit");
    return 0;
}
