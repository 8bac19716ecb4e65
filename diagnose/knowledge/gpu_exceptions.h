// The exceptions of a GPU by the number that its core dumps give them: data from
// knowledge/gpu_exceptions.json.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cudiag {

struct GpuExceptionKind {
    std::uint32_t code = 0;  // CUDBGException_t
    std::string name;        // "CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS"
    std::string text;        // "a read or write outside of what is mapped"
    int error = 0;           // the CUresult that the driver gives for it
    std::string source;
};

// nullptr for one that is not known. Pointers stay valid for ever.
const GpuExceptionKind* gpu_exception_kind(std::uint32_t code);
std::vector<const GpuExceptionKind*> all_gpu_exception_kinds();

// Throws KnowledgeError, as those of tables.h do.
std::map<std::uint32_t, GpuExceptionKind> parse_gpu_exceptions(std::string_view json);

// As knowledge_problems(), of this file.
std::vector<std::string> gpu_exception_problems();

}  // namespace cudiag
