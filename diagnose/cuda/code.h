// The code that the driver was to load, as far as it stands in a file.
#pragma once

#include <string>
#include <vector>

#include "diagnose/cuda/running.h"
#include "diagnose/elf/fatbin.h"

namespace cudiag {

struct LoadedCode {
    std::string file;               // "" if it was given in memory of no file, or was not seen
    std::vector<DeviceCode> codes;  // of that very image; else of the whole file
    bool exact = false;             // the image itself was found
};

LoadedCode code_of(const FailedCudaCall& call);

}  // namespace cudiag
