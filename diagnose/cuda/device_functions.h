// The functions in the code of a module as it was loaded on a GPU: a relocated cubin, which is an
// ELF file in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cudiag {

// Where an address of the GPU is.
struct DevicePlace {
    std::string kernel;        // mangled, of whose code it is part; "" if not known
    std::string function;      // mangled, the innermost: the kernel, or a function that it calls
    std::uint64_t offset = 0;  // of the address in the function
};

class DeviceFunctions {
  public:
    // Takes any bytes; those of no ELF file have no functions.
    explicit DeviceFunctions(std::string image);

    // Nothing where no loaded function holds the address.
    std::optional<DevicePlace> place_of(std::uint64_t address) const;

  private:
    struct Function {
        std::uint64_t address = 0, size = 0;
        std::uint32_t section = 0;
        bool kernel = false;
        std::string name;
    };

    std::vector<Function> functions_;  // by address; of two at one place the smaller one is last
};

}  // namespace cudiag
