// knowledge/gpu_faults.json turned into tables. Apart from gpu_faults.h so that tests can feed in
// malformed data.
#pragma once

#include <map>
#include <regex>
#include <string_view>
#include <vector>

#include "diagnose/knowledge/gpu_faults.h"

namespace cudiag {

struct GpuFaultTable {
    std::map<int, GpuFault> by_code;
    std::vector<KernelHint> hints;
    std::vector<std::regex> compiled;  // of each hint
};

// Throws KnowledgeError as those of tables.h do.
GpuFaultTable parse_gpu_faults(std::string_view json);

}  // namespace cudiag
