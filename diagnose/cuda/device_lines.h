// Source lines of the code of a module, where it was compiled with line tables (nvcc -lineinfo or
// -G), by elfutils' libdw.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cudiag {

class DeviceLines {
  public:
    // Takes any bytes, and needs them no longer than the call; those without line tables have none.
    explicit DeviceLines(const std::string& image);

    // "/src/adam.cu:26"; "" where no line is known.
    std::string source_of(std::uint64_t address) const;

  private:
    struct Line {
        std::uint64_t address = 0;
        bool end = false;  // of a sequence: nothing is known from here on
        std::uint32_t file = 0;
        int number = 0;
    };

    std::vector<Line> lines_;  // by address
    std::vector<std::string> files_;
};

}  // namespace cudiag
