// knowledge/{cuda_errors,drivers,cuda_texts,cuda_unavailable,ptx_versions}.json turned into tables.
// Apart from cuda.h and ptx_versions.h so that tests can feed in malformed data.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/ptx_versions.h"
#include "diagnose/knowledge/tables.h"

namespace cudiag {

struct CudaErrorTable {
    std::map<int, CudaError> by_code;
    std::map<std::string, int, std::less<>> by_name;
};

struct DriverTable {
    std::vector<DriverNeed> needs;
    std::vector<RuntimePackage> packages;
    std::map<std::string, std::string, std::less<>> cuda_of_branch;
};

struct UnavailableTable {
    std::map<int, UnavailableCode> by_code;
};

struct PtxTable {
    std::vector<PtxVersion> versions;  // the oldest first
};

// Each throws KnowledgeError as those of tables.h do.
CudaErrorTable parse_cuda_errors(std::string_view json);
DriverTable parse_drivers(std::string_view json);
PatternTable parse_cuda_texts(std::string_view json);
UnavailableTable parse_unavailable(std::string_view json);
PtxTable parse_ptx_versions(std::string_view json);

}  // namespace cudiag
