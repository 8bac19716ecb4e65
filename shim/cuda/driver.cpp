#include "shim/cuda/driver.h"

#include <link.h>
#include <string.h>

#include "record/keep_errno.h"
#include "shim/cuda/failed_calls.h"
#include "shim/loaded_object.h"
#include "shim/modules.h"

namespace cudiag {
namespace {

enum Entry : size_t {

#define CUDIAG_DRIVER_CALL(name, parameters, errors) entry_##name,
#include "shim/cuda/driver.def"
#undef CUDIAG_DRIVER_CALL
    entries
};

constexpr DriverCall kCalls[entries] = {
#define CUDIAG_DRIVER_CALL(name, parameters, errors) {#name, Errors::errors},
#include "shim/cuda/driver.def"
#undef CUDIAG_DRIVER_CALL
};

// Where the libcuda that was seen exports each function; nullptr: it has none, or none was seen.
// Written by whoever sees it: two threads may do so at once, and write the same.
void* real[entries];
void* error_string = nullptr;  // cuGetErrorString

template <class T>
T* load(T* const* from) {
    return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

template <class T>
void store(T** to, T* value) {
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

void* wrapper_of(size_t entry);

// By address alone. Some 60 compares, once for each function that a program asks for.
void* wrapper_for(void* address) {
    for (size_t entry = 0; entry < entries; ++entry) {
        if (load(&real[entry]) == address) {
            return wrapper_of(entry);
        }
    }
    return nullptr;
}

// One for each row. The program's arguments go to the real function as they are, and its result
// comes back as it is. What a successful call costs: a load, a call and a compare.
template <size_t entry, class Function>
struct Wrapper;

template <size_t entry, class... Arguments>
struct Wrapper<entry, int(Arguments...)> {
    using Function = int(Arguments...);

    static int call(Arguments... arguments) {
        auto* const function = reinterpret_cast<Function*>(load(&real[entry]));
        const int result = function(arguments...);
        if (__builtin_expect(result != 0, 0)) {
            note_failed_call(kCalls[entry], entry, result,
                             reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
        } else {
            succeeded(arguments...);
        }
        return result;
    }

  private:
    static void succeeded([[maybe_unused]] Arguments... arguments) {
        // A runtime that finds the driver too old asks for its version, and never for cuInit.
        if constexpr (entry == entry_cuInit || entry == entry_cuDriverGetVersion) {
            remember_driver();
        }
        if constexpr (entry == entry_cuGetProcAddress || entry == entry_cuGetProcAddress_v2) {
            replace(arguments...);
        }
    }

    template <class... Rest>
    static void replace(const char* /*name*/, void** address, Rest... /*rest*/) {
        void* const wrapper =
            address == nullptr || *address == nullptr ? nullptr : wrapper_for(*address);
        if (wrapper != nullptr) {
            *address = wrapper;
        }
    }
};

void* wrapper_of(size_t entry) {
    static void* const wrappers[entries] = {
// NOLINTBEGIN(bugprone-macro-parentheses): part of a type, which can bear none
#define CUDIAG_DRIVER_CALL(name, parameters, errors) \
    reinterpret_cast<void*>(&Wrapper<entry_##name, int parameters>::call),
#include "shim/cuda/driver.def"
#undef CUDIAG_DRIVER_CALL
        // NOLINTEND(bugprone-macro-parentheses)
    };
    return wrappers[entry];
}

// Stands where a function was that only an unloaded libcuda had: CUDA_ERROR_DEINITIALIZED.
int is_gone() {
    return 4;
}

struct Search {
    void* address;  // that the program was given
    size_t entry;   // under whose name
    bool found;
    bool older_one_lives;
    void* addresses[entries];
    void* error_string;
};

bool is_libcuda(const struct dl_phdr_info& info) {
    const char* soname = soname_of(info);
    return soname != nullptr && strncmp(soname, "libcuda.so", strlen("libcuda.so")) == 0;
}

int search_object(struct dl_phdr_info* info, size_t /*size*/, void* data) {
    auto& search = *static_cast<Search*>(data);
    if (!is_libcuda(*info)) {
        return 0;
    }
    void* const known = load(&real[entry_cuInit]);
    if (known != nullptr && exported_address(*info, kCalls[entry_cuInit].name) == known) {
        search.older_one_lives = true;
    } else if (exported_address(*info, kCalls[search.entry].name) == search.address) {
        search.found = true;
        search.error_string = exported_address(*info, "cuGetErrorString");
        for (size_t entry = 0; entry < entries; ++entry) {
            search.addresses[entry] = exported_address(*info, kCalls[entry].name);
        }
    }
    return 0;
}

// Two names of one address have one signature, and nothing tells which: neither is replaced.
void drop_twins(void* (&addresses)[entries]) {
    for (size_t a = 0; a < entries; ++a) {
        bool twin = false;
        for (size_t b = a + 1; b < entries; ++b) {
            if (addresses[a] != nullptr && addresses[b] == addresses[a]) {
                addresses[b] = nullptr;
                twin = true;
            }
        }
        addresses[a] = twin ? nullptr : addresses[a];
    }
}

// Of several libcuda in a process only the first is stood before, until it is unloaded: a wrapper
// knows one real function.
void learn(size_t entry, void* address) {
    Search search{};
    search.address = address;
    search.entry = entry;
    (void)dl_iterate_phdr(search_object, &search);
    if (!search.found || search.older_one_lives) {
        return;
    }
    drop_twins(search.addresses);
    if (search.addresses[entry_cuInit] == nullptr) {
        return;  // by which it is known again
    }
    for (size_t each = 0; each < entries; ++each) {
        void* next = search.addresses[each];
        if (next == nullptr && load(&real[each]) != nullptr) {
            next = reinterpret_cast<void*>(&is_gone);
        }
        store(&real[each], next);
    }
    store(&error_string, search.error_string);
}

size_t entry_of(const char* name) {
    size_t entry = 0;
    while (entry < entries && strcmp(kCalls[entry].name, name) != 0) {
        ++entry;
    }
    return entry;
}

}  // namespace

bool is_driver_call(const char* name) {
    return entry_of(name) < entries;
}

void* stand_in_for(const char* name, void* address) {
    const KeepErrno keep;
    const size_t entry = entry_of(name);
    if (address == nullptr || entry == entries) {
        return address;
    }
    if (load(&real[entry]) != address) {
        learn(entry, address);
    }
    return load(&real[entry]) == address ? wrapper_of(entry) : address;
}

bool driver_path(char* path, size_t size) {
    uint64_t offset = 0;
    void* const init = load(&real[entry_cuInit]);
    return init != nullptr &&
           module_holding(reinterpret_cast<uintptr_t>(init), path, size, &offset);
}

uint64_t driver_version() {
    auto* const ask = reinterpret_cast<int (*)(int*)>(load(&real[entry_cuDriverGetVersion]));
    int version = 0;
    return ask != nullptr && ask(&version) == 0 && version > 0 ? static_cast<uint64_t>(version) : 0;
}

const char* driver_words(int error) {
    auto* const ask = reinterpret_cast<int (*)(int, const char**)>(load(&error_string));
    const char* words = nullptr;
    return ask != nullptr && ask(error, &words) == 0 && words != nullptr ? words : "";
}

}  // namespace cudiag
