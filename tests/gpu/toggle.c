// Preloaded before libcudiag.so, lets one process switch between the driver's functions with and without the shim, as often as it likes: two
// processes differ by more than what a launch costs. Not for anything but measuring.
//
//   cc -O2 -shared -fPIC -o toggle.so tests/gpu/toggle.c -ldl;  LD_PRELOAD="toggle.so build/bin/libcudiag.so" PROGRAM
//
// The program calls cudiag_test_toggle(0: the driver, 1: the shim, 2: a launch through a function that only hands it on), which tells how many
// functions it switched. Where the answers of libcudiag.so and of the driver
// to the same question differ, a jump through a slot is handed out; both ways cost that jump.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SLOTS 512
void* cudiag_test_now[SLOTS] __attribute__((visibility("hidden")));
static void* shims[SLOTS];
static void* drivers[SLOTS];
static void* forwarders[SLOTS];
static atomic_int used;

extern char cudiag_test_jumps[] __attribute__((visibility("hidden")));
__asm__(".text\n.balign 16\ncudiag_test_jumps:\n"
        ".set slot, 0\n.rept 512\n"
        ".balign 16\nendbr64\njmp *cudiag_test_now+slot(%rip)\n.set slot, slot+8\n.endr\n");

typedef void* LookUp(void*, const char*);
typedef int Address(const char*, void**, int, uint64_t, int*);

static LookUp* libc_dlsym(void) {
    static LookUp* found;
    if (found == NULL) {
        void* libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
        found = (LookUp*)dlvsym(libc, "dlsym", "GLIBC_2.34");
        found = found != NULL ? found : (LookUp*)dlvsym(libc, "dlsym", "GLIBC_2.2.5");
    }
    return found;
}

static LookUp* next_dlsym(void) {
    static LookUp* found;
    if (found == NULL) {
        found = (LookUp*)libc_dlsym()(RTLD_NEXT, "dlsym");
    }
    return found;
}

typedef int Launch(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);

static Launch* driver_launch;

// What standing before the driver costs whoever does nothing there: its arguments are handed on, and its result comes back.
static int forwarded_launch(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                            unsigned block_z, unsigned shared, void* stream, void** parameters, void** extra) {
    const int result =
        driver_launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra);
    __asm__ volatile("");
    return result;
}

static void* either(const char* name, void* shim, void* driver) {
    if (shim == driver || shim == NULL || driver == NULL) {
        return shim;
    }
    const int known = atomic_load(&used);
    for (int i = 0; i < known; ++i) {
        if (shims[i] == shim) {
            return cudiag_test_jumps + 16 * (size_t)i;
        }
    }
    const int slot = atomic_fetch_add(&used, 1);
    if (slot >= SLOTS) {
        return shim;
    }
    shims[slot] = shim;
    drivers[slot] = driver;
    forwarders[slot] = driver;
    if (strcmp(name, "cuLaunchKernel") == 0) {
        driver_launch = (Launch*)driver;
        forwarders[slot] = (void*)forwarded_launch;
    }
    cudiag_test_now[slot] = shim;
    return cudiag_test_jumps + 16 * (size_t)slot;
}

static Address* shim_address;
static Address* driver_address;

static int address(const char* name, void** found, int version, uint64_t flags, int* status) {
    void* driver = NULL;
    int ignored = 0;
    const int result = shim_address(name, found, version, flags, status);
    if (result == 0 && found != NULL && *found != NULL && driver_address(name, &driver, version, flags, &ignored) == 0) {
        // The way to itself must stay ours.
        *found = strcmp(name, "cuGetProcAddress") == 0 ? (void*)address : either(name, *found, driver);
    }
    return result;
}

__attribute__((visibility("default"))) void* dlsym(void* handle, const char* name) {
    LookUp* const next = next_dlsym();
    if (name == NULL || name[0] != 'c' || name[1] != 'u' || handle == RTLD_NEXT || handle == RTLD_DEFAULT) {
        return next(handle, name);
    }
    void* const shim = next(handle, name);
    void* const driver = libc_dlsym()(handle, name);
    if (strcmp(name, "cuGetProcAddress_v2") == 0 && shim != driver) {
        shim_address = (Address*)shim;
        driver_address = (Address*)driver;
        return (void*)address;
    }
    return either(name, shim, driver);
}

__attribute__((visibility("default"))) int cudiag_test_toggle(int way) {
    void** const ways[] = {drivers, shims, forwarders};
    const int known = atomic_load(&used);
    for (int i = 0; i < known; ++i) {
        cudiag_test_now[i] = ways[way][i];
    }
    return known;
}
