// Which CUDA first knows a version of the PTX ISA: data from knowledge/ptx_versions.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cudiag {

struct PtxVersion {
    std::string ptx;     // "8.4"
    std::string cuda;    // the first release that knows it: "12.4"
    std::string driver;  // its driver branch: "550"; "" if not looked up
    bool checked = false;
    std::string source;
};

// By the version in .version; nullptr for one that is not known. Pointers stay valid for ever.
const PtxVersion* ptx_version(std::string_view ptx);
std::vector<const PtxVersion*> all_ptx_versions();  // the oldest first

// Whether a driver of a CUDA release ("12.4", as cuda_of_driver() and cuda_release_of() give it)
// compiles PTX of a version. Nothing for a version or release that is not known.
std::optional<bool> ptx_known_to(std::string_view cuda_of_driver, std::string_view ptx);

// As knowledge_problems(), of this file.
std::vector<std::string> ptx_problems();

}  // namespace cudiag
