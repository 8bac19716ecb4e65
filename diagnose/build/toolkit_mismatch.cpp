// build-toolkit-mismatch, as a compile tells it: this nvcc is too old for what torch's headers ask
// for, and refuses the language standard before it starts any other program.
#include <algorithm>

#include "diagnose/build/fixes.h"
#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/knowledge/knowledge.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

std::string standard_in(const std::vector<std::string>& argv) {
    for (std::size_t i = 1; i < argv.size(); ++i) {
        for (const char* option : {"-std=", "--std="}) {
            if (argv[i].rfind(option, 0) == 0) {
                return argv[i].substr(argv[i].find('=') + 1);
            }
        }
        if ((argv[i] == "-std" || argv[i] == "--std") && i + 1 < argv.size()) {
            return argv[i + 1];
        }
    }
    return {};
}

}  // namespace

std::optional<Finding> build_toolkit_mismatch(const BuildCase& c) {
    const auto toolkit = c.toolkit();
    const ToolkitRelease* known =
        c.step.tool() == "nvcc" && toolkit ? toolkit_release(toolkit->release) : nullptr;
    const std::string standard = standard_in(c.step.argv);
    if (known == nullptr || standard.empty() || known->standards.empty() || c.step.signal != 0 ||
        std::find(known->standards.begin(), known->standards.end(), standard) !=
            known->standards.end()) {
        return std::nullopt;
    }
    const std::string torch = c.torch_version();
    const TorchRelease* release = torch.empty() ? nullptr : torch_release(torch);
    const std::string cuda = release == nullptr ? "" : release->cuda;
    Finding finding = begin_finding(
        c, "build-toolkit-mismatch",
        say("nvcc {} does not know -std={}{}", known->release, standard,
            cuda.empty() ? ""
                         : say(", which torch {} (for CUDA {}) is compiled with", torch, cuda)));
    finding.evidence["nvcc"] = toolkit->nvcc;
    finding.evidence["nvcc_release"] = known->release;
    finding.evidence["torch"] = torch;
    finding.evidence["torch_cuda"] = cuda;
    finding.evidence["consequence"] =
        say("the newest standard of this nvcc is {}", known->newest_standard);
    for (const Toolkit& other : c.toolkits()) {
        if (cuda.empty() ? other.release != known->release : other.release == cuda) {
            finding.fixes.push_back(fix_by_cuda_home(other));
            break;
        }
    }
    if (!cuda.empty()) {
        const std::vector<Fix> installs = fixes_by_toolkit(c, cuda);
        finding.fixes.insert(finding.fixes.end(), installs.begin(), installs.end());
    }
    finding.limits = say("that nothing else differs between the two CUDA releases is not known");
    return finding;
}

}  // namespace cudiag
