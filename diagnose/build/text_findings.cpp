// What the exception that ended a Python program says of a build of which no step tells more: it
// was given up before it began, or it ran inside the process (NVRTC). The texts are data
// (knowledge/build_texts.json).
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "diagnose/build/fixes.h"
#include "diagnose/build/host_compiler.h"
#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/knowledge/knowledge.h"
#include "diagnose/knowledge/toolchain.h"
#include "diagnose/loader/file_version.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/packages/owner.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Told {
    const BuildCase& c;
    const PythonException& exception;
    const BuildText& text;

    std::string value(const std::string& key) const {
        const auto found = text.values.find(key);
        return found == text.values.end() ? std::string{} : found->second;
    }
};

std::string cuda_of(const std::string& torch) {
    const TorchRelease* release = torch.empty() ? nullptr : torch_release(torch);
    return release == nullptr ? "" : release->cuda;
}

Finding begin(const Told& told, std::string title) {
    Finding finding = begin_finding(told.c, told.text.pattern->slug.c_str(), std::move(title));
    finding.time_ns = told.exception.time_ns;
    finding.python = told.exception.python;
    finding.evidence["error"] = told.text.line.empty() ? told.exception.message : told.text.line;
    return finding;
}

// How the program met ninja: as its own attempts to start it tell.
const AskedProgram* attempt_of(const Told& told, const std::string& program) {
    for (const Process& process : told.c.facts.processes) {
        for (const AskedProgram& failed : process.asked_programs) {
            if (base_name(failed.path) == program) {
                return &failed;
            }
        }
    }
    for (const AskedProgram& failed : told.c.facts.build.asked_programs) {
        if (base_name(failed.path) == program) {
            return &failed;
        }
    }
    return nullptr;
}

bool is_on_path(const BuildCase& c, const std::string& program) {
    const std::vector<std::string> directories = split(c.variable("PATH"), ':');
    return std::any_of(directories.begin(), directories.end(), [&](const std::string& directory) {
        const std::string file = directory + "/" + program;
        std::error_code error;
        return fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
    });
}

std::optional<Finding> missing_compiler(const Told& told) {
    const std::string asked =
        told.value("asked").empty() ? told.value("program") : told.value("asked");
    const std::string program = base_name(asked);
    const AskedProgram* attempt = attempt_of(told, program);
    if (attempt == nullptr && asked == program && is_on_path(told.c, program)) {
        return std::nullopt;  // nvcc says the same of a gcc that is there and fails
    }
    const bool broken = attempt != nullptr && attempt->error == 0 && attempt->status != 0;
    Finding finding = missing_program(told.c, broken ? attempt->path : asked, broken);
    if (program == "nvcc" && asked.find('/') == std::string::npos) {
        const std::string torch = told.c.torch_version();
        finding.title =
            say("no nvcc on this machine's paths, and CUDA_HOME is not set{}",
                torch.empty() ? ""
                              : say(": torch {} brings the CUDA {} runtime, not the compiler",
                                    torch, cuda_of(torch)));
    }
    if (broken) {
        finding.evidence["ended"] = WIFSIGNALED(attempt->status)
                                        ? say("signal {}", WTERMSIG(attempt->status))
                                        : say("exit status {}", WEXITSTATUS(attempt->status));
    }
    finding.time_ns = told.exception.time_ns;
    finding.python = told.exception.python;
    finding.evidence["error"] = told.text.line;
    return finding;
}

Finding toolkit_mismatch(const Told& told) {
    const std::string torch = told.c.torch_version();
    std::string cuda = told.value("torch_cuda");
    if (cuda.empty() || cuda == "%s") {
        cuda = cuda_of(torch);
    }
    const auto toolkit = told.c.toolkit();
    const std::vector<Toolkit> near = told.c.toolkits();
    std::string release = told.value("nvcc_release");
    if (release.empty() || release == "%s") {
        release = toolkit ? toolkit->release : near.empty() ? "" : near.front().release;
    }
    const auto used = std::find_if(near.begin(), near.end(), [&](const Toolkit& candidate) {
        return candidate.release == release;
    });
    Finding finding =
        begin(told, say("nvcc is of CUDA {}, and torch {} was built for CUDA {}: the build is "
                        "refused",
                        release, torch, cuda));
    finding.evidence["nvcc"] = toolkit && toolkit->release == release ? toolkit->nvcc
                               : used != near.end()                   ? used->nvcc
                                                                      : "";
    finding.evidence["nvcc_release"] = release;
    finding.evidence["torch"] = torch;
    finding.evidence["torch_cuda"] = cuda;
    finding.evidence["consequence"] =
        say("an extension built so would map two CUDA runtimes into one process");
    for (const Toolkit& other : near) {
        if (other.release == cuda) {
            finding.fixes.push_back(fix_by_cuda_home(other));
            break;
        }
    }
    const std::vector<Fix> installs = fixes_by_toolkit(told.c, cuda);
    finding.fixes.insert(finding.fixes.end(), installs.begin(), installs.end());
    // Or the other way round: a torch for the toolkit that is there.
    for (const TorchRelease* candidate : all_torch_releases()) {
        if (candidate->cuda == release) {
            finding.fixes.push_back(
                {.text = say("or take a torch that was built for CUDA {} (every extension "
                             "is then to be built anew)",
                             release),
                 .command = fmt::format("{} -m pip install 'torch=={}.*'", told.c.python(),
                                        candidate->version)});
            break;
        }
    }
    finding.limits = say("whether the package accepts the other torch is not known");
    return finding;
}

Finding unsupported_arch(const Told& told) {
    const std::string architecture = told.value("architecture");
    const std::string list = told.c.variable("TORCH_CUDA_ARCH_LIST");
    const auto toolkit = told.c.toolkit();
    const ToolkitRelease* known = toolkit ? toolkit_release(toolkit->release) : nullptr;
    Finding finding =
        begin(told, architecture.empty()
                        ? say("no GPU is visible here and TORCH_CUDA_ARCH_LIST is not set: "
                              "torch does not know what to compile for")
                        : say("torch does not know the architecture {}", architecture));
    finding.evidence["architecture"] = architecture.empty() ? "none" : architecture;
    finding.evidence["nvcc"] = toolkit ? toolkit->nvcc : "";
    finding.evidence["nvcc_release"] = toolkit ? toolkit->release : "";
    finding.evidence["supported"] =
        known == nullptr ? std::vector<std::string>{} : known->architectures;
    finding.evidence["torch_cuda_arch_list"] = list;
    finding.evidence["flag_from"] = architecture.empty() ? "nothing" : "TORCH_CUDA_ARCH_LIST";
    finding.fixes.push_back(
        {.text = say("name the architecture of the GPU that the program will run "
                     "on, as the driver names it there"),
         .command = kArchitecturesOfTheseGpus});
    finding.fixes.push_back(
        {.text =
             say("where no GPU is at hand, write it (9.0 for H100 and H200, 8.0 for A100, 8.9 for "
                 "L4 and RTX 40); several are separated by ';'"),
         .command = "export TORCH_CUDA_ARCH_LIST=9.0"});
    finding.limits = say("which GPU the program will run on is not known here: 9.0 is an example");
    return finding;
}

// Include directories that the log names, and those that the usual variables lead to.
std::vector<std::string> nvrtc_directories(const Told& told) {
    std::vector<std::string> directories;
    const auto add = [&](const std::string& directory) {
        std::error_code error;
        if (fs::is_directory(directory, error) &&
            std::find(directories.begin(), directories.end(), directory) == directories.end()) {
            directories.push_back(directory);
        }
    };
    static const std::regex file{R"((/[^\s"'()]+/include)(?:/[^\s"'()]*)?\([0-9]+\))"};
    for (auto it = std::sregex_iterator(told.exception.message.begin(),
                                        told.exception.message.end(), file);
         it != std::sregex_iterator(); ++it) {
        add((*it)[1]);
    }
    for (const char* name : {"CUDA_PATH", "CUDA_HOME"}) {
        if (const std::string home = told.c.variable(name); !home.empty()) {
            add(home + "/include");
        }
    }
    return directories;
}

std::optional<Finding> nvrtc_failed(const Told& told) {
    std::string nvrtc;
    if (told.c.root != nullptr) {
        for (const auto& [number, modules] : told.c.root->snapshots) {
            for (const Module& module : modules) {
                if (base_name(module.path).rfind("libnvrtc.so", 0) == 0) {
                    nvrtc = module.path;
                }
            }
        }
    }
    if (nvrtc.empty()) {
        return std::nullopt;  // the words may be another compiler's
    }
    std::string release = file_version(nvrtc);
    if (const auto dot = release.find('.'); dot != std::string::npos) {
        release = release.substr(0, release.find('.', dot + 1));
    }
    const std::vector<std::string> directories = nvrtc_directories(told);
    auto listed = Json::array();
    std::string other;
    std::string other_directory;
    for (const std::string& directory : directories) {
        const std::string headers = release_of_headers(directory);
        listed.push_back({{"dir", directory}, {"cuda_release", headers}});
        if (!headers.empty() && headers != release && other.empty()) {
            other = headers;
            other_directory = directory;
        }
    }
    std::string chosen_by;
    for (const char* name : {"CUDA_PATH", "CUDA_HOME"}) {
        const std::string home = told.c.variable(name);
        if (!home.empty() && !other_directory.empty() && other_directory.rfind(home, 0) == 0) {
            chosen_by = fmt::format("{}={}", name, home);
        }
    }
    const std::string header = told.value("header");
    // A variable that leads elsewhere is no proof that the compile looked there.
    const bool named_in_log = !other_directory.empty() &&
                              told.exception.message.find(other_directory) != std::string::npos;
    static const std::regex of_cuda{
        R"re((?:identifier|type|namespace) "(?:__nv_|__half|nv_|cuda|__cu|__nv)[A-Za-z0-9_:]*")re"};
    const bool may_be_theirs =
        named_in_log || (!other.empty() && std::regex_search(told.exception.message, of_cuda));
    if (!may_be_theirs && told.text.pattern->name == "nvrtc-log") {
        return std::nullopt;  // the kernel's own mistake, as far as is known
    }
    Finding finding = begin(
        told,
        !other.empty() ? say("NVRTC {} compiled with the headers of CUDA {} in {}", release, other,
                             other_directory)
        : !header.empty()
            ? say("NVRTC {} finds no {} in the include directories it was given", release, header)
            : say("a compile by NVRTC {} failed: {}", release, told.text.line));
    finding.evidence["nvrtc"] = nvrtc;
    finding.evidence["nvrtc_release"] = release;
    finding.evidence["include_directories"] = std::move(listed);
    finding.evidence["variable"] = chosen_by;
    constexpr std::size_t kLog = 600;
    finding.evidence["log"] = told.exception.message.substr(0, kLog);
    if (!chosen_by.empty()) {
        finding.fixes.push_back(
            {.text = say("let no variable choose other headers than NVRTC's ({})", chosen_by),
             .command = fmt::format("unset {}", chosen_by.substr(0, chosen_by.find('=')))});
    }
    if (const HeaderOwner* runtime = header_owner("cuda_runtime.h")) {
        for (const Provider& provider : header_providers(*runtime, release)) {
            if (provider.manager == "pip") {
                finding.fixes.push_back(
                    {.text = say("install the headers of NVRTC's own release, {}", release),
                     .command = install_command(provider, told.c.python())});
            }
        }
    }
    if (other.empty() || !named_in_log) {
        finding.confidence = Confidence::likely;
        finding.limits =
            say("the include directories are those that the log and the variables name: others may "
                "have been passed");
    }
    return finding;
}

std::optional<Finding> without_extension(const Told& told) {
    const std::string module = told.value("module");
    const std::string name = package_of_extension(module.substr(0, module.find('.')));
    for (const std::string& site : told.c.site_packages()) {
        const auto package = pip_package(site, name);
        if (!package) {
            continue;
        }
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(site, error)) {
            const std::string file = entry.path().filename().string();
            if (file.rfind(module + ".", 0) == 0 && file.find(".so") != std::string::npos) {
                return std::nullopt;  // it is there: another failure
            }
        }
        Finding finding =
            begin(told, say("{} {} is installed without its compiled extensions: it was built "
                            "without being asked for them",
                            name, package->version));
        finding.evidence["package"] = name;
        finding.evidence["version"] = package->version;
        finding.evidence["module"] = module;
        finding.evidence["location"] = package->location;
        if (name == "apex") {
            finding.fixes.push_back(
                {.text = say(
                     "build it from its source folder, with the options that make the extensions "
                     "(pip must hand them on: pip 23.1 or newer)"),
                 .command = fmt::format(
                     "{} -m pip install -v --no-build-isolation --no-cache-dir --force-reinstall "
                     "--config-settings '--build-option=--cpp_ext' --config-settings "
                     "'--build-option=--cuda_ext' ./",
                     told.c.python())});
        } else {
            finding.fixes.push_back({.text = say("build {} from source with its extensions, "
                                                 "as its documentation says",
                                                 name),
                                     .command = ""});
        }
        finding.limits = say("which options the build was given is not recorded anywhere");
        return finding;
    }
    return std::nullopt;
}

// torch compares the releases itself, before it starts anything.
std::optional<Finding> refused_host_compiler(const Told& told) {
    const auto toolkit = told.c.toolkit();
    const std::string name = told.value("host_compiler");
    HostCompiler host{.kind = {}, .release = told.value("host_release"), .path = name, .major = 0};
    if (!toolkit || host.release.empty()) {
        return std::nullopt;
    }
    host.kind = name.find("clang") != std::string::npos ? "clang" : "gcc";
    host.major = std::atoi(host.release.c_str());
    auto finding = too_new_for_nvcc(told.c, *toolkit, host);
    if (finding) {
        finding->time_ns = told.exception.time_ns;
        finding->python = told.exception.python;
        finding->evidence["error"] = told.text.line;
    }
    return finding;
}

// DeepSpeed keeps, with ops that were built when it was installed, what they were built for.
std::optional<Finding> ops_of_another_release(const Told& told) {
    const auto package = told.c.installed("deepspeed");
    if (!package) {
        return std::nullopt;
    }
    const bool cuda = told.text.pattern->name == "deepspeed-other-cuda";
    Finding finding =
        begin(told, cuda ? say("DeepSpeed's ops were built when it was installed, with CUDA {}; a "
                               "torch of CUDA {} loads them",
                               told.value("built_with"), told.value("loaded_by"))
                         : say("DeepSpeed's ops were built when it was installed, with torch {}; "
                               "torch {} loads them",
                               told.value("built_with"), told.value("loaded_by")));
    finding.evidence["built_with"] = told.value("built_with");
    finding.evidence["loaded_by"] = told.value("loaded_by");
    finding.evidence["cache"] = package->location;
    finding.evidence["file"] = package->location;
    finding.fixes.push_back(
        {.text =
             say("build DeepSpeed anew against the torch that is installed (set DS_BUILD_OPS or "
                 "DS_BUILD_FUSED_ADAM as then, for ops that are to be built ahead)"),
         .command = anew(told.c, *package)});
    finding.limits = say("which ops were built ahead is not looked at");
    return finding;
}

std::optional<Finding> finding_of(const Told& told) {
    const std::string& slug = told.text.pattern->slug;
    if (slug == "build-missing-compiler") {
        return missing_compiler(told);
    }
    if (slug == "build-toolkit-mismatch") {
        return toolkit_mismatch(told);
    }
    if (slug == "build-unsupported-arch") {
        return unsupported_arch(told);
    }
    if (slug == "build-unsupported-host-compiler") {
        return refused_host_compiler(told);
    }
    if (slug == "build-stale-cache") {
        return ops_of_another_release(told);
    }
    if (slug == "build-nvrtc-failed") {
        return nvrtc_failed(told);
    }
    if (slug == "package-without-extension") {
        return without_extension(told);
    }
    return std::nullopt;  // the steps tell more
}

}  // namespace

std::optional<Finding> build_text_finding(const Facts& facts, const Process& process) {
    BuildStep nothing;  // no step failed: the program itself gave up
    nothing.pid = process.pid;
    nothing.exe = process.exe;
    nothing.argv = process.argv;
    nothing.cwd = process.cwd;
    nothing.end_ns = process.end_time_ns;
    const BuildCase c{.facts = facts, .step = nothing, .above = {}, .root = &process};
    for (const PythonException& exception : process.exceptions) {
        std::vector<std::string> functions;
        functions.reserve(exception.python.size());
        for (const PythonFrame& frame : exception.python) {
            functions.push_back(frame.function);
        }
        for (const BuildText& text : build_texts_of(exception.type, exception.message, functions)) {
            if (auto finding = finding_of({c, exception, text})) {
                return finding;
            }
        }
    }
    return std::nullopt;
}

}  // namespace cudiag
