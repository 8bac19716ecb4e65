// build-unsupported-arch: nvcc refuses a -gencode or -arch of its command line, and says so before
// it starts any other program.
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/build/fixes.h"
#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// Does nvcc take the word, or what follows its "=", for architectures?
bool is_option(const std::string& word, bool with_value) {
    constexpr const char* kOptions[] = {"-arch",      "--gpu-architecture", "-code",
                                        "--gpu-code", "-gencode",           "--generate-code"};
    return std::any_of(std::begin(kOptions), std::end(kOptions), [&](const std::string& option) {
        return with_value ? word.rfind(option + "=", 0) == 0 : word == option;
    });
}

// "compute_70" and "sm_70" of "arch=compute_70,code=sm_70": the names in the value of an option.
void add_architectures(const std::string& value, std::vector<std::string>& found) {
    for (const char* prefix : {"compute_", "sm_", "lto_"}) {
        for (auto at = value.find(prefix); at != std::string::npos;
             at = value.find(prefix, at + 1)) {
            const auto digits = at + std::string{prefix}.size();
            const auto end =
                std::min(value.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz", digits),
                         value.size());
            if (end > digits) {
                found.push_back(std::string{prefix} + value.substr(digits, end - digits));
            }
        }
    }
}

// Every architecture that the command line asks for. Files and macros may bear such names too.
std::vector<std::string> architectures_in(const std::vector<std::string>& argv) {
    std::vector<std::string> found;
    for (std::size_t i = 1; i < argv.size(); ++i) {
        if (is_option(argv[i], true) || is_option(argv[i - 1], false)) {
            add_architectures(argv[i], found);
        }
    }
    return found;
}

// Did torch make the flag from TORCH_CUDA_ARCH_LIST, or does the package's own build say so?
std::string origin_of(const BuildCase& c, const std::string& architecture,
                      const std::string& list) {
    std::string script = say("the build's own flags");
    if (c.root != nullptr) {
        if (const auto file = argument_ending(c.root->argv, {"setup.py"})) {
            script = absolute_path(*file, c.root->cwd);
        }
    }
    if (list.empty()) {
        return say("{}, or the GPUs that torch saw: TORCH_CUDA_ARCH_LIST is not set", script);
    }
    for (const std::string& piece : split(list, ';')) {
        for (const std::string& entry : split(piece, ' ')) {
            if (architecture_name(entry) == architecture_name(architecture)) {
                return "TORCH_CUDA_ARCH_LIST";
            }
        }
    }
    return say("{}: TORCH_CUDA_ARCH_LIST does not name it", script);
}

std::string list_without(const std::string& list, const ToolkitRelease& toolkit) {
    std::string kept;
    for (const std::string& piece : split(list, ';')) {
        for (const std::string& entry : split(piece, ' ')) {
            if (compiles_for(toolkit, entry).value_or(true)) {
                kept += (kept.empty() ? "" : ";") + entry;
            }
        }
    }
    return kept;
}

}  // namespace

std::optional<Finding> build_unsupported_arch(const BuildCase& c) {
    if (c.step.tool() != "nvcc" || c.step.signal != 0) {
        return std::nullopt;
    }
    const auto toolkit = c.toolkit();
    const ToolkitRelease* known = toolkit ? toolkit_release(toolkit->release) : nullptr;
    if (known == nullptr) {
        return std::nullopt;
    }
    std::string refused;
    for (const std::string& architecture : architectures_in(c.step.argv)) {
        if (compiles_for(*known, architecture) == false) {
            refused = architecture;
            break;
        }
    }
    if (refused.empty()) {
        return std::nullopt;
    }
    const std::string list = c.variable("TORCH_CUDA_ARCH_LIST");
    const std::string origin = origin_of(c, refused, list);
    const std::string range =
        known->architectures.empty()
            ? ""
            : say(": it knows {} to {}", known->architectures.front(), known->architectures.back());
    Finding finding =
        begin_finding(c, "build-unsupported-arch",
                      say("nvcc {} does not compile for {}{}", known->release, refused, range));
    finding.evidence["architecture"] = refused;
    finding.evidence["nvcc"] = toolkit->nvcc;
    finding.evidence["nvcc_release"] = known->release;
    finding.evidence["supported"] = known->architectures;
    finding.evidence["torch_cuda_arch_list"] = list;
    finding.evidence["flag_from"] = origin;
    finding.evidence["source"] = c.source();
    if (origin == "TORCH_CUDA_ARCH_LIST") {
        const std::string kept = list_without(list, *known);
        if (!kept.empty()) {
            finding.fixes.push_back(
                {.text = say("build for the others of the list only"),
                 .command = fmt::format("export TORCH_CUDA_ARCH_LIST='{}'", kept)});
        } else {
            finding.fixes.push_back(
                {.text = say("build for the GPU that the program will run on, as the driver "
                             "names it there (nvcc {} compiles for {} and newer)",
                             known->release, known->architectures.front()),
                 .command = kArchitecturesOfTheseGpus});
        }
    } else if (list.empty()) {
        finding.fixes.push_back(
            {.text =
                 say("if torch made the flags, TORCH_CUDA_ARCH_LIST replaces them: set it to the "
                     "architecture of the GPU that the program will run on, as the driver names it "
                     "there"),
             .command = kArchitecturesOfTheseGpus});
        finding.fixes.push_back(
            {.text = say("if the package's build names it, take it out there (grep "
                         "for gencode in its setup.py), or take a release of the "
                         "package that was made for this CUDA"),
             .command = ""});
    } else {
        finding.fixes.push_back(
            {.text =
                 say("the package's own build adds the flag, so TORCH_CUDA_ARCH_LIST changes "
                     "nothing: take a release of the package that was made for this CUDA, or take "
                     "the flag out (grep for gencode in its setup.py)"),
             .command = ""});
    }
    const std::vector<Toolkit> toolkits = c.toolkits();
    const std::string torch = c.torch_version();
    const TorchRelease* of_torch = torch.empty() ? nullptr : torch_release(torch);
    const auto major_of = [](const std::string& text) { return text.substr(0, text.find('.')); };
    const auto older = std::find_if(toolkits.begin(), toolkits.end(), [&](const Toolkit& other) {
        const ToolkitRelease* release = toolkit_release(other.release);
        // One of another major than torch's would map a second runtime into the process.
        return release != nullptr && compiles_for(*release, refused) == true &&
               (of_torch == nullptr || major_of(of_torch->cuda) == major_of(other.release));
    });
    if (older != toolkits.end()) {
        Fix fix = fix_by_cuda_home(*older);
        fix.text += say(", which knows it");
        finding.fixes.push_back(std::move(fix));
    }
    finding.limits = say("which GPU the program will run on is not known here");
    return finding;
}

}  // namespace cudiag
