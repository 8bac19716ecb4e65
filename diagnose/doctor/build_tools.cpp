#include "diagnose/doctor/build_tools.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "diagnose/build/words.h"
#include "diagnose/doctor/programs.h"
#include "diagnose/doctor/torch_install.h"
#include "diagnose/elf/elf_file.h"
#include "diagnose/knowledge/toolchain.h"
#include "diagnose/packages/databases.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

std::string value_of(const Variables& environment, const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string{} : found->second;
}

bool exists(const std::string& path) {
    std::error_code error;
    return fs::exists(path, error);
}

// include_paths("cuda") of cpp_extension.py, and Python's own.
std::vector<std::string> include_flags(const DoctorFacts& facts, const CudaHome& home) {
    std::vector<std::string> flags;
    const auto add = [&](const std::string& directory) {
        flags.emplace_back("-isystem");
        flags.push_back(directory);
    };
    if (facts.torch.found()) {
        add(facts.torch.directory + "/include");
        add(facts.torch.directory + "/include/torch/csrc/api/include");
    }
    const std::string more = facts.variable("CUDA_INC_PATH");
    for (const std::string& directory : {home.home.empty() ? "" : home.home + "/include", more}) {
        if (!directory.empty() && directory != "/usr/include") {
            add(directory);
        }
    }
    if (!facts.python.include_directory.empty()) {
        add(facts.python.include_directory);
    }
    return flags;
}

std::string release_text(int packed) {
    return fmt::format("{}.{}.{}", packed / 10000, packed / 100 % 100, packed % 100);
}

HostCompiler compiler_in(const std::string& printed, const std::string& path) {
    static const std::regex version{R"((gcc|clang) version (\d+)(\.[0-9.]+)?)"};
    HostCompiler compiler;
    std::smatch match;
    if (std::regex_search(printed, match, version)) {
        compiler.kind = match[1];
        compiler.release = match[2].str() + match[3].str();
        compiler.major = std::atoi(match[2].str().c_str());
        compiler.path = path;
    }
    return compiler;
}

// Asks a compiler for its release and where it looks for headers; it preprocesses /dev/null, which
// also shows whether its cc1plus is there.
void ask_host_compiler(HostPass& pass, const std::vector<std::string>& words,
                       const std::string& path, const Variables& environment) {
    pass.tool.asked = words.empty() ? "" : words.front();
    pass.tool.path = found_on_path(pass.tool.asked, path);
    if (pass.tool.path.empty()) {
        return;
    }
    std::vector<std::string> command{pass.tool.path};
    command.insert(command.end(), words.begin() + 1, words.end());
    for (const char* word : {"-E", "-v", "-x", "c++", "/dev/null"}) {
        command.emplace_back(word);
    }
    command.insert(command.end(), pass.flags.begin(), pass.flags.end());
    const LoaderRun run = ask_program(command, environment);
    pass.tool.runs = succeeded(run);
    pass.compiler = compiler_in(run.err, pass.tool.path);
    pass.include_directories = include_directories_in(run.err);
    if (!pass.tool.runs) {
        pass.tool.said = complaint_of(run);
    }
}

// _wrap_compiler(): ccache, else sccache, before every compiler, unless a variable forbids it.
void ask_wrapper(const DoctorFacts& facts, BuildTools& tools) {
    if (!facts.torch.wraps_compilers || !facts.variable("TORCH_NO_COMPILER_WRAPPER").empty()) {
        return;
    }
    for (const char* wrapper : {"ccache", "sccache"}) {
        const std::string found = found_on_path(wrapper, facts.variable("PATH"));
        if (!found.empty() && tools.cxx.tool.runs) {
            const LoaderRun run =
                ask_program({found, tools.cxx.tool.path, "--version"}, facts.environment);
            tools.wrapper = {.asked = wrapper,
                             .path = found,
                             .runs = succeeded(run),
                             .said = succeeded(run) ? "" : complaint_of(run)};
            return;
        }
    }
}

std::string first_match(const std::string& text, const std::regex& pattern) {
    std::smatch match;
    return std::regex_search(text, match, pattern) ? match[1].str() : "";
}

std::vector<std::string> nvcc_words(const DoctorFacts& facts, const CudaHome& home) {
    const std::string given = facts.variable("PYTORCH_NVCC");
    return given.empty() ? std::vector<std::string>{home.home + "/bin/nvcc"} : shell_words(given);
}

// Its tools lie where nvcc's profile says; what PATH held before comes last.
std::vector<std::string> missing_tools_of(const NvccPlan& plan) {
    std::vector<std::string> missing;
    for (const std::string& tool : plan.tools) {
        const bool own = tool == "cicc" && !plan.cicc_directory.empty();
        const std::string found =
            own ? found_on_path(plan.cicc_directory + "/cicc", "") : found_on_path(tool, plan.path);
        if (found.empty() && std::find(missing.begin(), missing.end(), tool) == missing.end()) {
            missing.push_back(tool);
        }
    }
    return missing;
}

std::vector<std::string> include_options(const std::vector<std::string>& words) {
    std::vector<std::string> options;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == "-isystem" || words[i] == "-I" || words[i] == "-iquote" ||
            words[i] == "-idirafter") {
            if (i + 1 < words.size()) {
                options.push_back(words[i]);
                options.push_back(words[++i]);
            }
        } else if (words[i].rfind("-I", 0) == 0) {
            options.push_back(words[i]);
        }
    }
    return options;
}

void ask_nvcc(const DoctorFacts& facts, BuildTools& tools) {
    std::vector<std::string> command = nvcc_words(facts, tools.home);
    tools.nvcc.asked = command.empty() ? "" : command.front();
    tools.nvcc.path = found_on_path(tools.nvcc.asked, facts.variable("PATH"));
    if (tools.nvcc.path.empty()) {
        return;
    }
    command.front() = tools.nvcc.path;
    if (facts.is_set("CC")) {
        command.emplace_back("-ccbin");
        command.push_back(facts.variable("CC"));
    }
    const std::vector<std::string> includes = include_flags(facts, tools.home);
    const std::vector<std::string> architectures =
        architecture_flags(facts.torch, facts.environment);
    command.insert(command.end(), includes.begin(), includes.end());
    command.insert(command.end(), architectures.begin(), architectures.end());
    for (const char* word : {"--compiler-options", "-fPIC", "--dryrun", "-x", "cu", "-c",
                             "/dev/null", "-o", "/dev/null.o"}) {
        command.emplace_back(word);
    }
    if (!facts.torch.standard.empty()) {
        command.push_back("-std=" + facts.torch.standard);
    }
    const LoaderRun run = ask_program(command, facts.environment);
    const NvccPlan plan = read_nvcc_plan(run.err + run.out);
    tools.nvcc.runs = succeeded(run) && !plan.host.empty();
    tools.nvcc.said = tools.nvcc.runs          ? ""
                      : plan.complaint.empty() ? complaint_of(run)
                                               : plan.complaint;
    if (!tools.nvcc.runs) {
        return;
    }
    tools.missing_tools = missing_tools_of(plan);
    tools.nvcc_host.flags = include_options(plan.host);
    ask_host_compiler(tools.nvcc_host, {plan.host.front()}, plan.path, facts.environment);
    if (!plan.compiler.kind.empty()) {  // what nvcc itself found goes before all else
        tools.nvcc_host.compiler.kind = plan.compiler.kind;
        tools.nvcc_host.compiler.release = plan.compiler.release;
        tools.nvcc_host.compiler.major = plan.compiler.major;
    }
}

std::string header_in(const std::vector<std::string>& directories, const std::string& header) {
    for (const std::string& directory : directories) {
        std::string file = directory + "/" + header;
        std::error_code error;
        if (fs::is_regular_file(file, error)) {
            return file;
        }
    }
    return {};
}

// The names in the #include lines of a file that stand in no condition of another product's
// (USE_CUDSS, USE_ROCM).
std::vector<std::string> includes_of(const std::string& file) {
    static const std::regex include{R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])"};
    static const std::regex condition{R"(^\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*))"};
    std::vector<std::string> names;
    std::vector<bool> foreign;
    std::ifstream stream{file};
    for (std::string line; std::getline(stream, line);) {
        std::smatch match;
        if (line.size() > 500) {
            continue;
        }
        if (std::regex_search(line, match, condition)) {
            const bool of_others = match[2].str().find("USE_") != std::string::npos;
            if (match[1] == "endif") {
                if (!foreign.empty()) {
                    foreign.pop_back();
                }
            } else if (match[1] == "elif" || match[1] == "else") {
                // The other branch of such a condition is not sure either.
            } else {
                foreign.push_back(of_others);
            }
        } else if (std::regex_search(line, match, include) &&
                   std::find(foreign.begin(), foreign.end(), true) == foreign.end()) {
            names.push_back(match[1]);
        }
    }
    return names;
}

// Files of torch that every CUDA extension comes by, one including the other: fused_adam's
// multi_tensor_adam.cu begins with ATen/cuda/CUDAContext.h.
constexpr const char* kTorchHeaders[] = {"ATen/cuda/CUDAContext.h",
                                         "ATen/cuda/CUDAContextLight.h",
                                         "ATen/cuda/Exceptions.h",
                                         "c10/cuda/CUDAException.h",
                                         "c10/cuda/CUDAFunctions.h",
                                         "c10/cuda/CUDAMiscFunctions.h",
                                         "c10/cuda/CUDAStream.h",
                                         "c10/util/complex.h",
                                         "c10/util/Half.h",
                                         "c10/util/BFloat16.h",
                                         "torch/headeronly/util/complex.h",
                                         "torch/headeronly/util/Half.h",
                                         "torch/headeronly/util/BFloat16.h"};

// Files of CUDA that these and nvcc itself come by in turn.
constexpr const char* kCudaHeaders[] = {"cuda_runtime.h",     "cuda_fp16.h",      "cuda_bf16.h",
                                        "cublas_v2.h",        "cusolverDn.h",     "cublas_api.h",
                                        "crt/host_runtime.h", "crt/host_config.h"};

// Does a header that CUDA's own headers include belong to the parts that every compile needs? What
// else they name stands in conditions of its own.
bool is_of_the_core(const std::string& header) {
    const HeaderOwner* owner = header_owner(header);
    if (owner == nullptr) {
        return false;
    }
    const std::vector<const HeaderGroup*> groups = all_header_groups();
    return owner->library == "fatbin" || owner->library == "cccl" ||
           std::any_of(groups.begin(), groups.end(), [&](const HeaderGroup* group) {
               return std::count(group->owners.begin(), group->owners.end(), owner) > 0;
           });
}

void want(BuildTools& tools, const std::string& header, const std::string& included_by,
          bool by_nvcc) {
    const bool known =
        std::any_of(tools.headers.begin(), tools.headers.end(), [&](const WantedHeader& other) {
            return other.header == header && other.by_nvcc == by_nvcc;
        });
    if (known) {
        return;
    }
    const std::vector<std::string>& directories =
        by_nvcc ? tools.nvcc_host.include_directories : tools.cxx.include_directories;
    tools.headers.push_back({header, included_by, by_nvcc, header_in(directories, header)});
}

void find_headers(const DoctorFacts& facts, BuildTools& tools) {
    if (tools.cxx.tool.runs && facts.torch.found()) {
        const std::string include = facts.torch.directory + "/include/";
        want(tools, "Python.h", include + "torch/csrc/python_headers.h", false);
        for (const char* header : {"cstdint", "stdlib.h"}) {
            want(tools, header, "", false);
        }
    }
    if (!tools.nvcc_host.tool.runs) {
        return;
    }
    want(tools, "cuda_runtime.h", "", true);
    want(tools, "crt/host_runtime.h", "", true);
    want(tools, "fatbinary_section.h", "", true);
    if (facts.torch.found()) {
        const std::string include = facts.torch.directory + "/include/";
        for (const char* file : kTorchHeaders) {
            for (const std::string& header : includes_of(include + file)) {
                if (header_group(header, include + file) != nullptr) {
                    want(tools, header, include + file, true);
                }
            }
        }
    }
    for (const char* file : kCudaHeaders) {
        const std::string path = header_in(tools.nvcc_host.include_directories, file);
        for (const std::string& header :
             path.empty() ? std::vector<std::string>{} : includes_of(path)) {
            const std::string beside = directory_of(path) + "/" + header;
            if (is_of_the_core(header) && !exists(beside)) {
                want(tools, header, path, true);
            }
        }
    }
}

// As the linker is called: torch's own directories, CUDA_HOME's, the compiler's, and its own.
void find_cudart(const DoctorFacts& facts, BuildTools& tools) {
    if (facts.torch.found()) {
        tools.link_directories.push_back(facts.torch.directory + "/lib");
    }
    // _prepare_ldflags(): lib64, or lib where there is no lib64 but a lib.
    const bool lib = !exists(tools.home.home + "/lib64") && exists(tools.home.home + "/lib");
    tools.link_directories.push_back(tools.home.home + (lib ? "/lib" : "/lib64"));
    if (tools.cxx.tool.runs) {
        const LoaderRun dirs =
            ask_program({tools.cxx.tool.path, "-print-search-dirs"}, facts.environment);
        static const std::regex libraries{"libraries: =([^\n]*)"};
        for (const std::string& directory : split(first_match(dirs.out, libraries), ':')) {
            tools.link_directories.push_back(absolute_path(directory, "/"));
        }
        for (const std::string& directory : split(facts.variable("LIBRARY_PATH"), ':')) {
            tools.link_directories.push_back(directory);
        }
        const LoaderRun name =
            ask_program({tools.cxx.tool.path, "-print-prog-name=ld"}, facts.environment);
        const std::string linker =
            found_on_path(name.out.substr(0, name.out.find('\n')), facts.variable("PATH"));
        static const std::regex built_in{R"re(SEARCH_DIR\("=?([^"]*)"\))re"};
        const std::string script =
            linker.empty() ? "" : ask_program({linker, "--verbose"}, facts.environment).out;
        for (auto it = std::sregex_iterator(script.begin(), script.end(), built_in);
             it != std::sregex_iterator(); ++it) {
            tools.link_directories.push_back((*it)[1]);
        }
    }
    for (const std::string& directory : tools.link_directories) {
        for (const char* name : {"/libcudart.so", "/libcudart.a"}) {
            if (exists(directory + name)) {  // not a link that leads nowhere
                tools.cudart = directory + name;
                const ElfRead read = read_elf(tools.cudart);
                tools.cudart_soname = read.file ? read.file->soname : "";
                return;
            }
        }
    }
}

// get_default_build_root() and _get_build_directory() of cpp_extension.py; appdirs follows
// XDG_CACHE_HOME.
void find_extensions_root(const DoctorFacts& facts, BuildTools& tools) {
    tools.extensions_root = facts.variable("TORCH_EXTENSIONS_DIR");
    if (!facts.is_set("TORCH_EXTENSIONS_DIR")) {
        std::string cache = facts.variable("XDG_CACHE_HOME");
        if (cache.empty()) {
            cache = facts.variable("HOME") + "/.cache";
        }
        const auto plain = [](std::string text) {
            text.erase(std::remove(text.begin(), text.end(), '.'), text.end());
            return text;
        };
        const std::string python = facts.python.version.substr(0, facts.python.version.rfind('.'));
        tools.extensions_root =
            fmt::format("{}/torch_extensions/py{}_{}", cache, plain(python),
                        facts.torch.cuda.empty() ? "cpu" : "cu" + plain(facts.torch.cuda));
    }
    std::error_code error;
    fs::path there = fs::absolute(tools.extensions_root, error);
    while (!fs::exists(there, error) && there.has_relative_path()) {
        there = there.parent_path();
    }
    tools.unwritable = access(there.c_str(), W_OK | X_OK) == 0 ? "" : there.string();
    for (const auto& build : fs::directory_iterator(tools.extensions_root, error)) {
        const std::string lock = build.path().string() + "/lock";
        if (exists(lock)) {
            tools.locks.push_back(lock);
        }
    }
    std::sort(tools.locks.begin(), tools.locks.end());
}

}  // namespace

NvccPlan read_nvcc_plan(const std::string& printed) {
    static const std::regex front_end{R"(--(gnu|clang)_version=(\d+))"};
    static const std::regex setting{R"(^#\$ ([A-Za-z_]+)=(.*)$)"};
    NvccPlan plan;
    std::istringstream lines{printed};
    std::string before;
    for (std::string line; std::getline(lines, line);) {
        std::smatch match;
        if (line.rfind("#$ ", 0) != 0) {
            if (line.rfind("nvcc fatal", 0) == 0) {
                plan.complaint = before.empty() ? line : before + "; " + line;
            } else if (before.empty()) {
                before = line;
            }
            continue;
        }
        const std::string head = line.substr(0, std::min<std::size_t>(line.size(), 64));
        if (std::regex_search(head, match, setting) || head.find('=') < head.find(' ', 3)) {
            const auto equals = line.find('=');
            const std::string name = line.substr(3, equals - 3);
            if (name == "PATH") {
                plan.path = line.substr(equals + 1);
            } else if (name == "CICC_PATH") {
                plan.cicc_directory = line.substr(equals + 1);
            }
            continue;
        }
        const std::vector<std::string> words = shell_words(line.substr(3));
        if (words.empty() || words.front() == "rm") {
            continue;
        }
        if (plan.host.empty()) {
            plan.host = words;
        } else if (base_name(words.front()) != base_name(plan.host.front())) {
            plan.tools.push_back(base_name(words.front()));
        }
        if (plan.compiler.kind.empty() && std::regex_search(line, match, front_end)) {
            const int packed = std::atoi(match[2].str().c_str());
            plan.compiler.kind = match[1] == "gnu" ? "gcc" : "clang";
            plan.compiler.release = release_text(packed);
            plan.compiler.major = packed / 10000;
        }
    }
    return plan;
}

std::vector<std::string> include_directories_in(const std::string& printed) {
    std::vector<std::string> directories;
    std::istringstream lines{printed};
    bool listing = false;
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind("#include <...> search starts here", 0) == 0) {
            listing = true;
        } else if (line.rfind("End of search list", 0) == 0) {
            break;
        } else if (listing && line.size() > 1 && line.front() == ' ') {
            directories.push_back(line.substr(1));
        }
    }
    return directories;
}

CudaHome cuda_home_of(const Variables& environment) {
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
        if (const std::string home = value_of(environment, name); !home.empty()) {
            return {home, name};
        }
    }
    if (const std::string nvcc = found_on_path("nvcc", value_of(environment, "PATH"));
        !nvcc.empty()) {
        return {directory_of(directory_of(nvcc)), say("nvcc in PATH")};
    }
    constexpr const char* kDefault = "/usr/local/cuda";
    return exists(kDefault) ? CudaHome{kDefault, kDefault} : CudaHome{};
}

std::vector<std::string> architecture_flags(const TorchInstall& torch,
                                            const Variables& environment) {
    const std::string list = value_of(environment, "TORCH_CUDA_ARCH_LIST");
    std::vector<std::string> flags;
    if (list.empty()) {
        return flags;
    }
    for (const std::string& architecture : architectures_of_list(torch, list)) {
        const std::string number = architecture_name(architecture);
        if (number.empty()) {
            continue;  // torch refuses it before any compiler sees it
        }
        flags.push_back(fmt::format("-gencode=arch=compute_{0},code=sm_{0}", number));
        if (architecture.find("+PTX") != std::string::npos) {
            flags.push_back(fmt::format("-gencode=arch=compute_{0},code=compute_{0}", number));
        }
    }
    return flags;
}

BuildTools build_tools(const DoctorFacts& facts) {
    BuildTools tools;
    const std::string path = facts.variable("PATH");
    tools.home = cuda_home_of(facts.environment);
    if (!tools.home.home.empty()) {
        tools.toolkit = toolkit_at(tools.home.home);
    }
    const std::string cxx = facts.is_set("CXX") ? facts.variable("CXX") : "c++";
    tools.cxx.flags = include_flags(facts, tools.home);
    ask_host_compiler(tools.cxx, shell_words(cxx), path, facts.environment);
    ask_wrapper(facts, tools);
    if (!tools.home.home.empty() || facts.is_set("PYTORCH_NVCC")) {
        ask_nvcc(facts, tools);
    }
    tools.ninja.asked = "ninja";
    tools.ninja.path = found_on_path("ninja", path);
    if (!tools.ninja.path.empty()) {
        const LoaderRun run = ask_program({tools.ninja.path, "--version"}, facts.environment);
        tools.ninja.runs = succeeded(run);
        tools.ninja.said = tools.ninja.runs ? "" : complaint_of(run);
    }
    find_headers(facts, tools);
    find_cudart(facts, tools);
    find_extensions_root(facts, tools);
    return tools;
}

}  // namespace cudiag
