#include "diagnose/doctor/torch_install.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "diagnose/build/words.h"
#include "diagnose/doctor/python_environment.h"
#include "diagnose/packages/databases.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargest = std::size_t{4} << 20;

// The value of `name = 'x'` or `name: Optional[str] = 'x'`; "" for None and where there is none.
std::string assigned(const std::string& text, const std::string& name) {
    const std::regex pattern{"(?:^|\n)" + name + R"( *(?::[^=\n]*)?= *['"]([^'"\n]*)['"])"};
    std::smatch match;
    return std::regex_search(text, match, pattern) ? match[1].str() : "";
}

// From one text to another, neither included; "" if one of them is not there.
std::string between(const std::string& text, const std::string& from, const std::string& to) {
    const auto begin = text.find(from);
    const auto end = begin == std::string::npos ? begin : text.find(to, begin + from.size());
    return end == std::string::npos ? ""
                                    : text.substr(begin + from.size(), end - begin - from.size());
}

void read_version(TorchInstall& torch) {
    const std::string text = file_text(torch.directory + "/version.py", kLargest);
    torch.version = assigned(text, "__version__");
    torch.cuda = assigned(text, "cuda");
    torch.hip = assigned(text, "hip");
}

void read_cpp_extension(TorchInstall& torch) {
    const std::string text = file_text(torch.directory + "/utils/cpp_extension.py", kLargest);
    static const std::regex standard{R"('-std=(c\+\+\d+)')"};
    static const std::regex quoted{R"('([0-9.a-z]+)')"};
    static const std::regex named{R"(\('([A-Za-z+]+)', *'([0-9.;+PTXa-z]+)'\))"};
    std::smatch match;
    if (std::regex_search(text, match, standard)) {
        torch.standard = match[1];
    }
    const std::string known = between(text, "supported_arches = [", "]");
    for (auto it = std::sregex_iterator(known.begin(), known.end(), quoted);
         it != std::sregex_iterator(); ++it) {
        torch.architectures.push_back((*it)[1]);
    }
    const std::string names = between(text, "named_arches = ", "])");
    for (auto it = std::sregex_iterator(names.begin(), names.end(), named);
         it != std::sregex_iterator(); ++it) {
        torch.named_architectures.emplace((*it)[1], (*it)[2]);
    }
    static const std::regex bound{R"('(\d+\.\d+)': *\([^\n]*, *\((\d+), *\d+\)\))"};
    const std::string bounds = between(text, "CUDA_GCC_VERSIONS", "\n}");
    for (auto it = std::sregex_iterator(bounds.begin(), bounds.end(), bound);
         it != std::sregex_iterator(); ++it) {
        torch.gcc_refused_from.emplace((*it)[1], std::atoi((*it)[2].str().c_str()));
    }
    torch.knows_native = text.find("== \"native\"") != std::string::npos;
    torch.wraps_compilers = text.find("def _wrap_compiler") != std::string::npos;
}

struct Preload {
    std::string folder, pattern;  // "cublas", "libcublas.so.*[0-9]"
};

// What _load_global_deps() loads before torch's own libraries once the CUDA runtime is there:
// either calls that name a library each, or the whole list of _preload_cuda_deps().
std::vector<Preload> preloads_of(const std::string& text) {
    static const std::regex pair{R"re(\("([a-z0-9_]+)", "(lib[^"]+)"\))re"};
    const std::string body = between(text, "def _load_global_deps()", "except Exception:");
    const bool whole_list = body.find("_preload_cuda_deps()") != std::string::npos;
    const std::string named = whole_list ? between(text, "cuda_libs: list", "\n    ]") : body;
    std::vector<Preload> preloads;
    for (auto it = std::sregex_iterator(named.begin(), named.end(), pair);
         it != std::sregex_iterator(); ++it) {
        preloads.push_back({(*it)[1], (*it)[2]});
    }
    return preloads;
}

// As _get_cuda_dep_paths() looks: in nvidia/FOLDER/lib, nvidia/cuNN/lib and FOLDER/lib of each
// directory of sys.path. The pattern ends in "*[0-9]".
std::string wheel_library(const PythonEnvironment& python, const TorchInstall& torch,
                          const Preload& preload) {
    const std::string stem = preload.pattern.substr(0, preload.pattern.find('*'));
    const std::string major = torch.cuda.substr(0, torch.cuda.find('.'));
    for (const std::string& packages : python.packages) {
        for (const std::string& below :
             {"/nvidia/" + preload.folder + "/lib", "/nvidia/cu" + major + "/lib",
              "/" + preload.folder + "/lib"}) {
            for (const std::string& file : entries_ending(packages + below, "")) {
                const std::string name = base_name(file);
                if (name.size() > stem.size() && name.rfind(stem, 0) == 0 &&
                    std::isdigit(static_cast<unsigned char>(name.back())) != 0) {
                    return file;
                }
            }
        }
    }
    return {};
}

void read_preloads(const PythonEnvironment& python, TorchInstall& torch) {
    const std::string text = file_text(torch.directory + "/__init__.py", kLargest);
    for (const Preload& preload : preloads_of(text)) {
        std::string file = wheel_library(python, torch, preload);
        if (file.empty()) {
            break;  // torch gives up at the first that it does not find, and says nothing
        }
        torch.preloads.push_back(std::move(file));
    }
}

void find_extension(const PythonEnvironment& python, TorchInstall& torch) {
    std::error_code error;
    for (const std::string& suffix : python.extension_suffixes) {
        const std::string file = torch.directory + "/_C" + suffix;
        if (fs::exists(file, error)) {
            torch.extension = file;
            return;
        }
    }
    for (const std::string& file : entries_ending(torch.directory, ".so")) {
        if (base_name(file).rfind("_C.", 0) == 0) {
            torch.extension_of_another_python = file;
        }
    }
}

// Of other projects, without which `import torch` ends: torch 2.1 to 2.13, __init__.py and what it
// imports at once. numpy and others that it can do without are not among them.
constexpr const char* kModules[] = {"typing_extensions"};
// The same of torch/utils/cpp_extension.py.
constexpr const char* kBuildModules[] = {"setuptools"};

template <std::size_t N>
std::vector<std::string> absent(const PythonEnvironment& python, const char* const (&modules)[N]) {
    std::vector<std::string> missing;
    for (const char* module : modules) {
        if (module_at(python, module).empty()) {
            missing.emplace_back(module);
        }
    }
    return missing;
}

}  // namespace

TorchInstall torch_install(const PythonEnvironment& python) {
    TorchInstall torch;
    std::error_code error;
    for (const std::string& packages : python.packages) {
        if (fs::exists(packages + "/torch/__init__.py", error)) {
            torch.directory = packages + "/torch";
            break;
        }
    }
    if (!torch.found()) {
        return torch;
    }
    read_version(torch);
    read_cpp_extension(torch);
    read_preloads(python, torch);
    find_extension(python, torch);
    torch.missing_modules = absent(python, kModules);
    torch.missing_for_builds = absent(python, kBuildModules);
    return torch;
}

std::vector<std::string> architectures_of_list(const TorchInstall& torch, std::string list) {
    std::replace(list.begin(), list.end(), ' ', ';');
    // The longest name first: "Ampere+Tegra" holds "Ampere".
    std::vector<std::pair<std::string, std::string>> names{torch.named_architectures.begin(),
                                                           torch.named_architectures.end()};
    std::stable_sort(names.begin(), names.end(),
                     [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
    for (const auto& [name, architectures] : names) {
        for (auto at = list.find(name); at != std::string::npos;
             at = list.find(name, at + architectures.size())) {
            list.replace(at, name.size(), architectures);
        }
    }
    // An empty entry is one that torch does not know.
    std::vector<std::string> result;
    for (std::size_t at = 0; at <= list.size();) {
        const auto end = std::min(list.find(';', at), list.size());
        result.push_back(list.substr(at, end - at));
        at = end + 1;
    }
    return result;
}

}  // namespace cudiag
