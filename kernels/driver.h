// The CUDA driver, found when it is needed: cudiag-gpu is linked with no CUDA library, so that it
// starts, and says what is wrong, wherever it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace cudiag {

// As in cuda.h, by the names and sizes of its ABI.
using CuResult = int;
using CuDevice = int;
using CuPointer = std::uint64_t;
using CuContext = struct CuContextObject*;
using CuModule = struct CuModuleObject*;
using CuFunction = struct CuFunctionObject*;
using CuStream = struct CuStreamObject*;
using CuEvent = struct CuEventObject*;

struct CuUuid {
    unsigned char bytes[16];
};

// A GPU cannot be used: what() says which call, the driver's name of the error and its words.
class DriverError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The functions of driver.def, each with the driver's own name: driver.cuInit(0).
class Driver {
  public:
    // Loads libcuda.so.1 and initialises it. Throws DriverError where there is none, or it refuses.
    Driver();

// NOLINTBEGIN(bugprone-macro-parentheses): a name and a list of types take none
#define CUDIAG_GPU_CALL(name, parameters) CuResult(*name) parameters = nullptr;
#include "kernels/driver.def"
#undef CUDIAG_GPU_CALL
    // NOLINTEND(bugprone-macro-parentheses)

    // Throws DriverError unless `result` is 0. `what` is the call.
    void check(CuResult result, const char* what) const;
};

#define CUDIAG_GPU(driver, name, ...) (driver).check((driver).name(__VA_ARGS__), #name)

// What the driver hands out and takes back. `kDestroy` is the member of Driver that does.
template <typename Handle, CuResult (*Driver::*kDestroy)(Handle)>
class Owned {
  public:
    Owned() = default;

    Owned(const Driver& driver, Handle handle) : driver_{&driver}, handle_{handle} {}

    Owned(Owned&& other) noexcept
        : driver_{other.driver_}, handle_{std::exchange(other.handle_, Handle{})} {}

    Owned& operator=(Owned&& other) noexcept {
        std::swap(driver_, other.driver_);
        std::swap(handle_, other.handle_);
        return *this;
    }

    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;

    ~Owned() {
        if (handle_ != Handle{}) {
            (void)(driver_->*kDestroy)(handle_);
        }
    }

    Handle get() const { return handle_; }

  private:
    const Driver* driver_ = nullptr;
    Handle handle_{};
};

using Stream = Owned<CuStream, &Driver::cuStreamDestroy_v2>;
using Event = Owned<CuEvent, &Driver::cuEventDestroy_v2>;
using Module = Owned<CuModule, &Driver::cuModuleUnload>;
using Buffer = Owned<CuPointer, &Driver::cuMemFree_v2>;
using HostBuffer = Owned<void*, &Driver::cuMemFreeHost>;

// In the current context. Throw DriverError.
Stream make_stream(const Driver& driver);
Event make_event(const Driver& driver);
Module load_module(const Driver& driver, const void* image);  // a fatbin or cubin
CuFunction function_of(const Driver& driver, const Module& module, const std::string& name);
Buffer allocate(const Driver& driver, std::size_t bytes);
HostBuffer allocate_host(const Driver& driver, std::size_t bytes);  // pinned

// Makes the device's primary context current while it lives.
class Context {
  public:
    Context(const Driver& driver, CuDevice device);
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

  private:
    const Driver& driver_;
    CuDevice device_;
};

}  // namespace cudiag
