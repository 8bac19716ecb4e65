#include <fmt/core.h>

#include <regex>

#include "diagnose/cuda/code.h"
#include "diagnose/cuda/gpu.h"
#include "diagnose/cuda/running_rules.h"
#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/ptx_versions.h"
#include "diagnose/loader/case.h"

namespace cudiag {
namespace {

// CUresult (cuda.h).
constexpr int kInvalidImage = 200;
constexpr int kInvalidPtx = 218;
constexpr int kUnsupportedPtx = 222;

// "9.9" of "Unsupported .version 9.9; current version is '9.0'", as the compiler in the driver
// writes it (seen: driver 580).
std::string version_in(const std::string& log) {
    static const std::regex pattern{R"(Unsupported \.version (\d+\.\d+))"};
    std::smatch match;
    const std::string searched = log.substr(0, kSearchedBytes);
    return std::regex_search(searched, match, pattern) ? match[1].str() : std::string{};
}

std::string newest_version(const LoadedCode& code) {
    std::string newest;
    for (const DeviceCode& each : code.codes) {
        newest = each.ptx && !each.ptx_version.empty() ? each.ptx_version : newest;
    }
    return newest;
}

}  // namespace

std::optional<Finding> cuda_ptx_rejected(const RunningCase& c) {
    const bool by_log =
        c.told.code == kInvalidImage && c.failed != nullptr && !c.failed->jit_log.empty();
    if (c.told.code != kInvalidPtx && c.told.code != kUnsupportedPtx && !by_log) {
        return std::nullopt;
    }
    const LoadedCode code = c.failed != nullptr ? code_of(*c.failed) : LoadedCode{};
    const std::string log = c.failed != nullptr ? c.failed->jit_log : std::string{};
    std::string version = version_in(log);
    if (version.empty() && c.told.code == kUnsupportedPtx && code.exact) {
        version = newest_version(code);
    }
    const std::string driver_cuda =
        c.process.cuda_driver ? cuda_release_of(c.process.cuda_driver->version) : std::string{};
    const PtxVersion* known = ptx_version(version);
    const std::string newer =
        known != nullptr ? fmt::format(", which CUDA {} brought", known->cuda) : std::string{};
    std::string title;
    if (c.told.code == kUnsupportedPtx) {
        title = fmt::format("the driver's compiler does not know PTX {}{}{}",
                            version.empty() ? "of that version" : version, newer,
                            driver_cuda.empty() ? "" : ": it is of CUDA " + driver_cuda);
    } else {
        title = "the driver's compiler refused the PTX that it was given";
    }
    Finding finding = begin_finding(c, "cuda-ptx-rejected", title);
    finding.evidence["ptx_version"] = version.empty() ? "not known" : version;
    finding.evidence["driver_cuda"] = driver_cuda.empty() ? "not known" : driver_cuda;
    if (known != nullptr) {
        finding.evidence["needs_cuda"] = known->cuda;
    }
    finding.evidence["jit_log"] = log.empty() ? "not seen" : log;
    finding.evidence["file"] =
        code.file.empty() ? "not seen (code made while running, or unseen)" : code.file;
    add_gpu(c.failed != nullptr ? c.failed->device : std::optional<CudaDevice>{}, finding.evidence);
    const bool too_new = known != nullptr && !driver_cuda.empty() &&
                         ptx_known_to(driver_cuda, version) == std::optional{false};
    if (too_new) {
        finding.fixes.push_back(
            {fmt::format("a driver of CUDA {} or later knows it{}", known->cuda,
                         known->driver.empty() ? "" : " (branch " + known->driver + ")"),
             "", false});
        finding.fixes.push_back(
            {fmt::format("or make the code with a compiler of CUDA {} or older (nvcc, Triton's "
                         "ptxas, NVRTC), or with SASS for this GPU, which needs no compiler",
                         driver_cuda),
             "", false});
    } else if (log.empty()) {
        finding.limits += (finding.limits.empty() ? "" : "; ") +
                          std::string{"what the driver's compiler said is not seen"};
    }
    return finding;
}

}  // namespace cudiag
