#include <charconv>

#include "diagnose/knowledge/cuda.h"
#include "diagnose/nccl/rules.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

const CudaError* error_of(const NcclCase& c) {
    const std::string code = c.value("code");
    int number = 0;
    if (std::from_chars(code.data(), code.data() + code.size(), number).ec == std::errc{}) {
        return cuda_error(number);
    }
    return c.value("words").empty() ? nullptr : cuda_error_saying(c.value("words"));
}

}  // namespace

std::optional<Finding> nccl_cuda_error(const NcclCase& c) {
    if (c.cause->slug != "nccl-cuda-error") {
        return std::nullopt;
    }
    Finding finding = begin_finding(c);
    if (const CudaError* error = error_of(c)) {
        finding.evidence["code"] = error->code;
        finding.evidence["code_name"] = error->runtime.empty() ? error->driver : error->runtime;
        finding.evidence["code_meaning"] = say_known(error->meaning);
    }
    return finding;
}

}  // namespace cudiag
