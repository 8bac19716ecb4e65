#include "cupti/real.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include <initializer_list>

#include "shim/loaded_object.h"
#include "shim/text.h"

namespace cudiag {
namespace {

constexpr size_t kPath = 4096;

Cupti functions{};
bool known = false;

bool begins_with(const char* text, const char* begin) {
    return text != nullptr && strncmp(text, begin, strlen(begin)) == 0;
}

int take_functions(struct dl_phdr_info* info, size_t /*size*/, void* /*data*/) {
    if (holds_this_code(*info) || !begins_with(soname_of(*info), "libcupti.so")) {
        return 0;
    }
    Cupti found{};
#define CUDIAG_CUPTI(name, parameters) \
    found.name = reinterpret_cast<decltype(found.name)>(exported_address(*info, #name));
#include "cupti/cupti.def"
#undef CUDIAG_CUPTI
    if (!found.found()) {
        return 0;
    }
    Text{found.path, sizeof found.path}.add(info->dlpi_name == nullptr ? "" : info->dlpi_name);
    functions = found;
    return 1;
}

// The libcudart in the process: its directory ("" if it has none) and its major release.
struct Runtime {
    char directory[kPath];
    unsigned major;
};

int find_runtime(struct dl_phdr_info* info, size_t /*size*/, void* data) {
    constexpr char kName[] = "libcudart.so.";
    const char* soname = soname_of(*info);
    if (!begins_with(soname, kName)) {
        return 0;
    }
    auto& runtime = *static_cast<Runtime*>(data);
    for (const char* at = soname + sizeof kName - 1; *at >= '0' && *at <= '9'; ++at) {
        runtime.major = runtime.major * 10 + static_cast<unsigned>(*at - '0');
    }
    Text{runtime.directory, sizeof runtime.directory}.add(
        info->dlpi_name == nullptr ? "" : info->dlpi_name);
    char* const slash = strrchr(runtime.directory, '/');
    if (slash != nullptr) {
        slash[1] = '\0';
    } else {
        runtime.directory[0] = '\0';
    }
    return 1;
}

// Of one CUDA each (11.8 alone of the 11 has the records that are read).
const char* file_of(unsigned major) {
    switch (major) {
        case 11:
            return "libcupti.so.11.8";
        case 12:
            return "libcupti.so.12";
        case 13:
            return "libcupti.so.13";
        default:
            return nullptr;
    }
}

bool open_at(const CuptiHost& host, const char* directory, const char* below, const char* file) {
    char path[kPath];
    Text text{path, sizeof path};
    text.add(directory).add(below).add(file);
    return !text.cut() && host.open(path, RTLD_NOW | RTLD_LOCAL) != nullptr;
}

}  // namespace

const Cupti& cupti() {
    // Two threads may look at once, and find the same.
    if (!__atomic_load_n(&known, __ATOMIC_ACQUIRE) &&
        dl_iterate_phdr(take_functions, nullptr) != 0) {
        __atomic_store_n(&known, true, __ATOMIC_RELEASE);
    }
    return functions;
}

const Cupti& load_cupti(const CuptiHost& host) {
    if (cupti().found()) {
        return functions;
    }
    static Runtime runtime;  // too large for a stack; one thread at a time
    runtime = {};
    (void)dl_iterate_phdr(find_runtime, &runtime);
    const unsigned major =
        runtime.major != 0 ? runtime.major : static_cast<unsigned>(host.driver_version / 1000);
    const char* const file = file_of(major);
    if (file == nullptr) {
        return functions;
    }
    bool open = false;
    if (runtime.directory[0] != '\0') {
        // nvidia/cu13/lib, a distribution's or conda's own; nvidia/cuda_runtime/lib; a toolkit.
        for (const char* below : {"", "../../cuda_cupti/lib/", "../extras/CUPTI/lib64/"}) {
            open = open || open_at(host, runtime.directory, below, file);
        }
    }
    for (const char* place :
         {"", "/usr/local/cuda/extras/CUPTI/lib64/", "/usr/local/cuda/lib64/"}) {
        open = open || open_at(host, place, "", file);
    }
    return cupti();
}

}  // namespace cudiag
