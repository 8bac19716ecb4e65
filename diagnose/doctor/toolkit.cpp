// Is there a compiler for CUDA, of the right release, with a host compiler that it takes?
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "diagnose/build/fixes.h"
#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/doctor/predicted.h"
#include "diagnose/doctor/programs.h"
#include "diagnose/doctor/rules.h"
#include "diagnose/doctor/torch_install.h"
#include "diagnose/knowledge/toolchain.h"
#include "diagnose/loader/case.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

constexpr const char* kUnknownArchitecture = "Unsupported gpu architecture";

void add(Checks& checks, const char* name, Health health, std::string text,
         std::optional<Finding> finding = std::nullopt) {
    checks.push_back({.question = Question::build,
                      .name = name,
                      .health = health,
                      .text = std::move(text),
                      .observed = false,
                      .finding = std::move(finding)});
}

void add_red(Checks& checks, const char* name, Finding finding) {
    std::string text = finding.title;
    add(checks, name, Health::red, std::move(text), ahead_of_time(std::move(finding)));
}

// By the checks of the driver, which come first.
bool sees_a_gpu(const Checks& checks) {
    return std::none_of(checks.begin(), checks.end(), [](const Check& check) {
        return check.question == Question::launch &&
               (check.health == Health::red || check.health == Health::unknown);
    });
}

// Without a toolkit: what the wheels bring is no compiler, however well torch runs.
std::string no_toolkit_text(const DoctorFacts& facts, const Checks& checks) {
    const std::string gpu = sees_a_gpu(checks) ? say("torch sees the GPU, but ") : "";
    if (!facts.torch.found()) {
        return say(
            "nothing here can compile CUDA: no CUDA_HOME, no nvcc in PATH, no /usr/local/cuda");
    }
    return say(
        "{}nothing here can compile CUDA: torch's wheels bring the CUDA {} runtime, not a toolkit "
        "(no CUDA_HOME, no nvcc in PATH, no /usr/local/cuda)",
        gpu, facts.torch.cuda);
}

void no_toolkit(const DoctorFacts& facts, Checks& checks) {
    auto finding = explained_exception(
        facts, "OSError",
        "CUDA_HOME environment variable is not set. Please set it to your CUDA install root.");
    add(checks, "toolkit", Health::red, no_toolkit_text(facts, checks), std::move(finding));
}

bool is_a_file(const std::string& path) {
    std::error_code error;
    return path.find('/') != std::string::npos && std::filesystem::is_regular_file(path, error);
}

// nvcc is there and refused, before any compiler was called.
void refused_by_nvcc(const DoctorFacts& facts, Checks& checks) {
    const std::string& said = facts.tools.nvcc.said;
    PredictedStep nvcc{facts, facts.tools.nvcc.path, false};
    nvcc.step().argv.push_back("-std=" + facts.torch.standard);
    std::optional<Finding> finding;
    if (said.find("is not defined for option 'std'") != std::string::npos) {
        finding = build_toolkit_mismatch(nvcc.build_case());
    } else if (said.find("host compiler") != std::string::npos) {
        finding = explained_exception(facts, "RuntimeError", said);
        if (!finding) {  // there is a gcc, and the build is told to use another one
            const std::string asked = facts.is_set("CC") ? facts.variable("CC") : "gcc";
            finding = missing_program(nvcc.build_case(), asked,
                                      !found_on_path(asked, facts.variable("PATH")).empty());
            finding->evidence["error"] = said;
        }
    } else {
        finding = missing_program(nvcc.build_case(), facts.tools.nvcc.path, true);
        finding->evidence["error"] = said;
    }
    add(checks, "toolkit", Health::red,
        finding
            ? finding->title + (finding->slug == "build-missing-compiler" ? say(": {}", said) : "")
            : said,
        finding ? std::optional{ahead_of_time(std::move(*finding))} : std::nullopt);
}

std::string host_words(const HostPass& pass) {
    return say("{} {} ({})", pass.compiler.kind, pass.compiler.release, pass.tool.path);
}

bool told_to_accept(const DoctorFacts& facts) {
    constexpr std::string_view kOption = "-allow-unsupported-compiler";
    return facts.variable("NVCC_PREPEND_FLAGS").find(kOption) != std::string::npos ||
           facts.variable("NVCC_APPEND_FLAGS").find(kOption) != std::string::npos;
}

void missing_host(const DoctorFacts& facts, const HostPass& pass, const char* name, bool under_nvcc,
                  Checks& checks) {
    const PredictedStep step{facts, pass.tool.path, under_nvcc};
    auto finding = pass.tool.path.empty()
                       ? std::nullopt
                       : explained_exception(facts, "RuntimeError", pass.tool.said);
    if (!finding) {
        finding = missing_program(step.build_case(),
                                  pass.tool.path.empty() ? pass.tool.asked : pass.tool.path,
                                  !pass.tool.path.empty());
    }
    if (!pass.tool.said.empty()) {
        finding->evidence["error"] = pass.tool.said;
    }
    add_red(checks, name, std::move(*finding));
}

void check_pair(const DoctorFacts& facts, Checks& checks) {
    const HostCompiler& host = facts.tools.nvcc_host.compiler;
    const std::string& release = facts.tools.toolkit.release;
    const PredictedStep step{facts, host.path, true};
    auto refused = too_new_for_nvcc(step.build_case(), facts.tools.toolkit, host);
    if (refused && told_to_accept(facts)) {
        add(checks, "nvcc-host-compiler", Health::yellow,
            refused->title +
                say(", and was told to accept it: whether it can read its headers is not "
                    "known before it tries"),
            ahead_of_time(std::move(*refused)));
        return;
    }
    if (refused) {
        add_red(checks, "nvcc-host-compiler", std::move(*refused));
        return;
    }
    const std::string glibc = load_state_of(facts.process(), {}).config.glibc_version;
    const std::pair<std::string, std::string> partners[] = {{host.kind, host.release},
                                                            {"glibc", glibc}};
    for (const auto& [kind, other] : partners) {
        for (const BadPair* pair : bad_pairs("nvcc", release, kind, other)) {
            Finding finding = begin_finding(
                step.build_case(), "build-incompatible-headers",
                say("nvcc {} and {} {}: {}", release, kind, other, say_known(pair->why)));
            finding.confidence = Confidence::likely;
            finding.evidence["pair"] = pair->name;
            finding.evidence["a"] = "nvcc";
            finding.evidence["a_release"] = release;
            finding.evidence["b"] = kind;
            finding.evidence["b_release"] = other;
            finding.evidence["header"] = pair->header;
            finding.evidence["source"] = pair->source;
            for (const std::string& remedy : pair->remedies) {
                finding.fixes.push_back({.text = remedy, .command = ""});
            }
            finding.limits =
                say("a toolkit whose headers were patched for this is not told from others");
            std::string text = finding.title;
            add(checks, "nvcc-host-compiler", Health::yellow, std::move(text),
                ahead_of_time(std::move(finding)));
            return;
        }
    }
    add(checks, "nvcc-host-compiler", Health::green,
        say("nvcc calls {}, which it supports", host_words(facts.tools.nvcc_host)));
}

// setup.py builds compare the C++ compiler with a table of torch's own.
void check_bounds_of_torch(const DoctorFacts& facts, Checks& checks) {
    const HostCompiler& cxx = facts.tools.cxx.compiler;
    const auto bound = facts.torch.gcc_refused_from.find(facts.tools.toolkit.release);
    static constexpr const char* kOff[] = {"ON", "1", "YES", "TRUE", "Y"};
    const bool off = std::find(std::begin(kOff), std::end(kOff),
                               facts.variable("TORCH_DONT_CHECK_COMPILER_ABI")) != std::end(kOff);
    if (off || cxx.kind != "gcc" || bound == facts.torch.gcc_refused_from.end() ||
        cxx.major < bound->second) {
        return;
    }
    const PredictedStep step{facts, cxx.path, true};
    auto finding = too_new_for_nvcc(step.build_case(), facts.tools.toolkit, cxx);
    const std::string text =
        say("setup.py builds refuse {} with CUDA {}: torch takes gcc before {} only",
            host_words(facts.tools.cxx), facts.tools.toolkit.release, bound->second);
    add(checks, "cxx-compiler", Health::red, text,
        finding ? std::optional{ahead_of_time(std::move(*finding))} : std::nullopt);
}

}  // namespace

std::string major_of(const std::string& release) {
    return release.substr(0, release.find('.'));
}

void check_toolkit(const DoctorFacts& facts, Checks& checks) {
    const BuildTools& tools = facts.tools;
    if (tools.home.home.empty() && !facts.is_set("PYTORCH_NVCC")) {
        no_toolkit(facts, checks);
        return;
    }
    if (tools.nvcc.path.empty()) {
        const PredictedStep step{facts, tools.nvcc.asked, false};
        Finding finding =
            missing_program(step.build_case(), tools.nvcc.asked, is_a_file(tools.nvcc.asked));
        finding.evidence["cuda_home"] = tools.home.home;
        finding.evidence["cuda_home_by"] = tools.home.rule;
        add_red(checks, "toolkit", std::move(finding));
        return;
    }
    if (!tools.nvcc.runs) {
        // Of architectures another check speaks.
        if (tools.nvcc.said.find(kUnknownArchitecture) == std::string::npos) {
            refused_by_nvcc(facts, checks);
        }
        return;
    }
    if (!tools.missing_tools.empty()) {
        const PredictedStep step{facts, tools.nvcc.path, false};
        Finding finding = missing_program(step.build_case(), tools.missing_tools.front(), false);
        finding.title =
            say("{} is there, but {}, which it calls, is not: the toolkit is "
                "there in part only",
                tools.nvcc.path, tools.missing_tools.front());
        finding.fixes = fixes_by_toolkit(step.build_case(), tools.toolkit.release);
        add_red(checks, "toolkit", std::move(finding));
        return;
    }
    add(checks, "toolkit", Health::green,
        say("nvcc {} at {} ({})", tools.toolkit.release, tools.nvcc.path,
            tools.home.rule.empty() ? "PYTORCH_NVCC" : tools.home.rule));
}

void check_toolkit_release(const DoctorFacts& facts, Checks& checks) {
    const std::string& nvcc = facts.tools.toolkit.release;
    const std::string& torch = facts.torch.cuda;
    if (nvcc.empty() || torch.empty() || facts.tools.nvcc.path.empty()) {
        return;
    }
    if (major_of(nvcc) == major_of(torch)) {
        add(checks, "toolkit-release", Health::green,
            nvcc == torch ? say("nvcc and torch are both of CUDA {}", nvcc)
                          : say("nvcc is of CUDA {}, torch of {}: releases of one major go "
                                "together",
                                nvcc, torch));
        return;
    }
    auto finding = explained_exception(
        facts, "RuntimeError",
        fmt::format("The detected CUDA version ({}) mismatches the version that was used to "
                    "compile PyTorch ({}). Please make sure to use the same CUDA versions.",
                    nvcc, torch));
    add(checks, "toolkit-release", Health::red,
        say("nvcc is of CUDA {}, torch of CUDA {}: setup.py builds are refused, and what "
            "torch's JIT builds has two CUDA runtimes in one process",
            nvcc, torch),
        std::move(finding));
}

void check_host_compilers(const DoctorFacts& facts, Checks& checks) {
    const BuildTools& tools = facts.tools;
    if (!facts.torch.found()) {
        // nvcc alone has no use for it.
    } else if (!tools.cxx.tool.runs) {
        missing_host(facts, tools.cxx, "cxx-compiler", false, checks);
    } else {
        add(checks, "cxx-compiler", Health::green, host_words(tools.cxx));
        check_bounds_of_torch(facts, checks);
    }
    if (!tools.wrapper.path.empty() && !tools.wrapper.runs) {
        const PredictedStep step{facts, tools.wrapper.path, false};
        Finding finding = missing_program(step.build_case(), tools.wrapper.path, true);
        finding.title = say("{} does not run, and torch puts it before every compiler: {}",
                            tools.wrapper.path, tools.wrapper.said);
        finding.fixes.insert(finding.fixes.begin(),
                             {.text = say("let torch do without it"),
                              .command = "export TORCH_NO_COMPILER_WRAPPER=1"});
        add_red(checks, "compiler-wrapper", std::move(finding));
    }
    if (!tools.nvcc.runs) {
        return;
    }
    if (!tools.nvcc_host.tool.runs) {
        missing_host(facts, tools.nvcc_host, "nvcc-host-compiler", true, checks);
    } else {
        check_pair(facts, checks);
    }
}

void check_architectures(const DoctorFacts& facts, Checks& checks) {
    const std::string list = facts.variable("TORCH_CUDA_ARCH_LIST");
    const TorchInstall& torch = facts.torch;
    if (torch.found() && (list.empty() || (list == "native" && torch.knows_native))) {
        if (sees_a_gpu(checks)) {
            add(checks, "architectures", Health::green,
                say("TORCH_CUDA_ARCH_LIST is not set: torch compiles for the GPUs that it sees"));
            return;
        }
        if (auto finding = explained_exception(facts, "IndexError", "list index out of range",
                                               "_get_cuda_arch_flags")) {
            add_red(checks, "architectures", std::move(*finding));
        }
        return;
    }
    for (const std::string& entry :
         torch.found() ? architectures_of_list(torch, list) : std::vector<std::string>{}) {
        const std::string name = entry.substr(0, entry.find("+PTX"));
        const bool known = torch.architectures.empty() ||
                           std::find(torch.architectures.begin(), torch.architectures.end(),
                                     name) != torch.architectures.end();
        auto finding = known
                           ? std::nullopt
                           : explained_exception(
                                 facts, "ValueError",
                                 fmt::format("Unknown CUDA arch ({}) or GPU not supported", entry),
                                 "_get_cuda_arch_flags");
        if (finding) {
            add_red(checks, "architectures", std::move(*finding));
            return;
        }
    }
    if (facts.tools.nvcc.said.find(kUnknownArchitecture) != std::string::npos) {
        PredictedStep step{facts, facts.tools.nvcc.path, false};
        const auto said = facts.tools.nvcc.said.find('\'');
        const std::string refused =
            said == std::string::npos ? ""
                                      : facts.tools.nvcc.said.substr(
                                            said + 1, facts.tools.nvcc.said.rfind('\'') - said - 1);
        step.step().argv.push_back("-gencode=arch=" + refused + ",code=sm_" +
                                   architecture_name(refused));
        auto finding = build_unsupported_arch(step.build_case());
        if (!finding) {  // a release that is not in the table, or not told
            finding = explained_exception(facts, "RuntimeError", facts.tools.nvcc.said);
            if (finding) {
                finding->title = facts.tools.nvcc.said;
            }
        }
        std::string text = finding ? finding->title : facts.tools.nvcc.said;
        add(checks, "architectures", Health::red, std::move(text),
            finding ? std::optional{ahead_of_time(std::move(*finding))} : std::nullopt);
        return;
    }
    if (torch.found() && facts.tools.nvcc.runs) {
        add(checks, "architectures", Health::green,
            say("TORCH_CUDA_ARCH_LIST={}: torch and nvcc know all of it", list));
    }
}

void check_ninja(const DoctorFacts& facts, Checks& checks) {
    const AskedTool& ninja = facts.tools.ninja;
    if (!facts.torch.found()) {
        return;
    }
    if (ninja.runs) {
        add(checks, "ninja", Health::green, ninja.path);
        return;
    }
    const PredictedStep step{facts, "ninja", false};
    Finding finding = missing_program(step.build_case(), ninja.path.empty() ? "ninja" : ninja.path,
                                      !ninja.path.empty());
    if (!ninja.said.empty()) {
        finding.evidence["error"] = ninja.said;
    }
    add_red(checks, "ninja", std::move(finding));
}

}  // namespace cudiag
