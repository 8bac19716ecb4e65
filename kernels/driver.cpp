#include "kernels/driver.h"

#include <dlfcn.h>
#include <fmt/core.h>

namespace cudiag {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";
// Pinned memory that every context may use (cuda.h: CU_MEMHOSTALLOC_PORTABLE).
constexpr unsigned kPortable = 1;

template <typename Function>
void look_up(void* library, const char* name, Function& function) {
    void* address = dlsym(library, name);
    if (address == nullptr) {
        throw DriverError(
            fmt::format("{} lacks {}: a driver older than CUDA 11.4 (R470)", kLibrary, name));
    }
    function = reinterpret_cast<Function>(address);
}

}  // namespace

Driver::Driver() {
    void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);  // kept for ever: its threads go on
    if (library == nullptr) {
        throw DriverError(fmt::format("no CUDA driver: {}", dlerror()));
    }
#define CUDIAG_GPU_CALL(name, parameters) look_up(library, #name, name);
#include "kernels/driver.def"
#undef CUDIAG_GPU_CALL
    CUDIAG_GPU(*this, cuInit, 0);
}

void Driver::check(CuResult result, const char* what) const {
    if (result == 0) {
        return;
    }
    const char* name = nullptr;
    const char* text = nullptr;
    (void)cuGetErrorName(result, &name);
    (void)cuGetErrorString(result, &text);
    throw DriverError(fmt::format("{} gave {} ({}{}{})", what, result,
                                  name == nullptr ? "unknown" : name, text == nullptr ? "" : ": ",
                                  text == nullptr ? "" : text));
}

Stream make_stream(const Driver& driver) {
    CuStream stream = nullptr;
    CUDIAG_GPU(driver, cuStreamCreate, &stream, 1);  // CU_STREAM_NON_BLOCKING
    return {driver, stream};
}

Event make_event(const Driver& driver) {
    CuEvent event = nullptr;
    CUDIAG_GPU(driver, cuEventCreate, &event, 0);
    return {driver, event};
}

Module load_module(const Driver& driver, const void* image) {
    CuModule module = nullptr;
    CUDIAG_GPU(driver, cuModuleLoadData, &module, image);
    return {driver, module};
}

CuFunction function_of(const Driver& driver, const Module& module, const std::string& name) {
    CuFunction function = nullptr;
    CUDIAG_GPU(driver, cuModuleGetFunction, &function, module.get(), name.c_str());
    return function;
}

Buffer allocate(const Driver& driver, std::size_t bytes) {
    CuPointer address = 0;
    CUDIAG_GPU(driver, cuMemAlloc_v2, &address, bytes);
    return {driver, address};
}

HostBuffer allocate_host(const Driver& driver, std::size_t bytes) {
    void* address = nullptr;
    CUDIAG_GPU(driver, cuMemHostAlloc, &address, bytes, kPortable);
    return {driver, address};
}

Context::Context(const Driver& driver, CuDevice device) : driver_{driver}, device_{device} {
    CuContext context = nullptr;
    CUDIAG_GPU(driver, cuDevicePrimaryCtxRetain, &context, device);
    CUDIAG_GPU(driver, cuCtxSetCurrent, context);
}

Context::~Context() {
    (void)driver_.cuCtxSetCurrent(nullptr);
    (void)driver_.cuDevicePrimaryCtxRelease_v2(device_);
}

}  // namespace cudiag
