#include <fmt/core.h>

#include <algorithm>

#include "diagnose/cuda/code.h"
#include "diagnose/cuda/gpu.h"
#include "diagnose/cuda/running_rules.h"
#include "diagnose/loader/case.h"
#include "diagnose/packages/owner.h"

namespace cudiag {
namespace {

constexpr int kNoBinary = 209;  // CUDA_ERROR_NO_BINARY_FOR_GPU (cuda.h)

bool any_runs(const std::vector<DeviceCode>& codes, int sm) {
    return std::any_of(codes.begin(), codes.end(), [&](const DeviceCode& code) {
        const Runs runs = runs_on(code, sm);
        return runs == Runs::as_it_is || runs == Runs::after_jit || runs == Runs::not_promised;
    });
}

// Of a package it is the package that must have the architecture; of the user's own file, its
// build.
void add_fixes(const LoadedCode& code, int sm, Finding& finding) {
    const auto owner = owner_of(code.file);
    if (owner) {
        finding.evidence["package"] = owner->name + " " + owner->version;
        finding.fixes.push_back(
            {fmt::format("{} {} was built without sm_{}: take a release of it that was built for "
                         "this GPU, or build it from source for it",
                         owner->name, owner->version, sm),
             "", false});
        return;
    }
    finding.fixes.push_back(
        {fmt::format("build it for this GPU: nvcc with -gencode arch=compute_{0},code=sm_{0}; an "
                     "extension of torch, made anew, with",
                     sm),
         fmt::format("export TORCH_CUDA_ARCH_LIST={}", capability_text(sm)), false});
}

}  // namespace

std::optional<Finding> cuda_no_kernel_image(const RunningCase& c) {
    if (c.told.code != kNoBinary) {
        return std::nullopt;
    }
    const int sm =
        c.failed != nullptr && c.failed->device ? c.failed->device->compute_capability() : 0;
    const LoadedCode code = c.failed != nullptr ? code_of(*c.failed) : LoadedCode{};
    const std::string gpu =
        gpu_text(c.failed != nullptr ? c.failed->device : std::optional<CudaDevice>{});
    const std::string words = device_code_words(code.codes);
    const std::string file = file_name(code.file);
    Finding finding = begin_finding(
        c, "cuda-no-kernel-image",
        words.empty() ? fmt::format("there is no code for {} in what was to be loaded", gpu)
                      : fmt::format("{} has no code for {}: it has {}", file, gpu, words));
    add_gpu(c.failed != nullptr ? c.failed->device : std::optional<CudaDevice>{}, finding.evidence);
    finding.evidence["file"] = code.file.empty() ? "not seen" : code.file;
    finding.evidence["architectures"] = words.empty() ? "not known" : words;
    finding.evidence["of"] = code.exact ? "the image that was to be loaded" : "the whole file";
    if (c.failed != nullptr && !c.failed->asked_name.empty()) {
        finding.evidence["kernel"] = kernel_name(c.failed->asked_name);
    } else if (c.failed != nullptr && !c.failed->kernel.empty()) {
        finding.evidence["kernel"] = kernel_name(c.failed->kernel);
    }
    const auto limit = [&](const std::string& text) {
        finding.limits += (finding.limits.empty() ? "" : "; ") + text;
    };
    if (words.empty() || sm == 0) {
        limit("which file's code it was is not seen");
    } else if (any_runs(code.codes, sm)) {
        // What was found is not what the driver refused, or there is more to it.
        finding.confidence = Confidence::likely;
        finding.title =
            fmt::format("the driver took none of what {} has for {}: {}", file, gpu, words);
        limit("some of it should run here: why the driver refused it is not known");
    } else {
        add_fixes(code, sm, finding);
    }
    return finding;
}

}  // namespace cudiag
