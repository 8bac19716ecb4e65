#include "diagnose/cuda/device_code.h"
#include "diagnose/cuda/gpu.h"
#include "diagnose/cuda/running_rules.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

constexpr int kNoBinaryForGpu = 209;  // CUDA_ERROR_NO_BINARY_FOR_GPU

// Which of the code runs on that device, "compute_80 (after the driver compiled it)".
std::vector<std::string> that_run(const std::vector<DeviceCode>& code, int sm) {
    std::vector<std::string> names;
    for (const DeviceCode& one : code) {
        switch (runs_on(one, sm)) {
            case Runs::no:
                break;
            case Runs::as_it_is:
                names.push_back(one.name());
                break;
            case Runs::after_jit:
                names.push_back(say("{} (after the driver compiled it)", one.name()));
                break;
            case Runs::not_promised:
                names.push_back(one.relocatable || one.lto
                                    ? say("{} (must be linked first)", one.name())
                                    : say("{} (not promised)", one.name()));
                break;
        }
    }
    return names;
}

void add_fixes(const CodeInQuestion& code, int sm, Finding& finding) {
    if (code.is_torch) {
        finding.fixes.push_back(
            {say("install a torch that was built for sm_{} (another CUDA variant of it, or "
                 "another release): it must be in the list that this prints",
                 sm),
             "python -c 'import torch; print(torch.__version__, torch.cuda.get_arch_list())'",
             false});
        return;
    }
    if (!code.package.empty()) {
        finding.fixes.push_back(
            {say("install a release of {} that has code for sm_{}{}", code.package, sm,
                 code.links_torch ? say(", or build it from its sources on this machine with "
                                        "TORCH_CUDA_ARCH_LIST={} set",
                                        capability_text(sm))
                                  : std::string{}),
             "", false});
        return;
    }
    if (is_for_one_architecture(code.code)) {
        finding.limits += (finding.limits.empty() ? "" : "; ") +
                          say("the code is for one architecture on purpose (a letter behind "
                              "its number): whether it can be built for this GPU is not "
                              "known");
        return;
    }
    finding.fixes.push_back(build_for(code, sm));
}

std::string title_of(const CodeInQuestion& code, const RunningCase& c, int sm, bool runs) {
    const std::string gpu = c.failed == nullptr ? say("the GPU") : gpu_text(c.failed->device);
    const std::string kernel =
        code.kernel.empty() ? std::string{} : say(" for {}", brief_kernel_name(code.kernel));
    if (code.file.empty() && !code.in_memory) {
        return say(
            "there is no device code{} that runs on {}; which file was to have it was "
            "not seen",
            kernel.empty() ? say(" for a kernel") : kernel, gpu);
    }
    if (code.code.empty()) {
        return say("{} has nothing that runs on {}{}; for what it was built is not known",
                   code_text(code), gpu, kernel);
    }
    const std::string has = say("{} has {}", code_text(code), device_code_words(code.code));
    if (sm == 0) {
        return say("{}, and the driver took none of it{}; what GPU it is was not seen", has,
                   kernel);
    }
    if (!runs) {
        return say("{}, and nothing that runs on {}{}", has, gpu, kernel);
    }
    return code.exact ? say("the driver took no code{} for {}, though {}", kernel, gpu, has)
                      : say("{} has no code{} that runs on {}; in all, {}", code_text(code),
                            kernel.empty() ? say(" for a kernel") : kernel, gpu, has);
}

}  // namespace

std::optional<Finding> cuda_no_kernel_image(const RunningCase& c) {
    if (c.sticky || c.told.code != kNoBinaryForGpu) {
        return std::nullopt;
    }
    const CodeInQuestion code = code_of(c);
    const std::optional<CudaDevice> device = c.failed == nullptr ? std::nullopt : c.failed->device;
    const int sm = device ? device->compute_capability() : 0;
    const std::vector<std::string> runs =
        sm == 0 ? std::vector<std::string>{} : that_run(code.code, sm);
    Finding finding =
        begin_finding(c, "cuda-no-kernel-image", title_of(code, c, sm, !runs.empty()));
    add_gpu(device, finding.evidence);
    add_code(code, finding.evidence);
    finding.evidence["runs_here"] = runs;
    const auto limit = [&](const std::string& text) {
        finding.limits += (finding.limits.empty() ? "" : "; ") + text;
    };
    if (c.failed == nullptr) {
        limit(say("the call that failed was not seen: neither the GPU nor the code is known"));
    } else if (code.code.empty()) {
        limit(say("the code that was refused could not be read"));
    } else if (sm != 0 && runs.empty()) {
        add_fixes(code, sm, finding);
    } else if (sm != 0) {
        finding.confidence = Confidence::likely;
        limit(code.exact
                  ? say("why the driver took none of it is not seen")
                  : say("which code of the file is this kernel's is not known: a part of it was "
                        "built for fewer architectures"));
    }
    if (!code.code.empty()) {
        limit(say("the file is read as it is now"));
    }
    return finding;
}

}  // namespace cudiag
