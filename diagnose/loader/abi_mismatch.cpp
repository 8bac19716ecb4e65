#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/rules.h"
#include "diagnose/loader/symbol_owner.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

// The name without its parameters: what stays the same when a signature changes. For _ZN…E names,
// up to the E that closes the nested name (Itanium C++ ABI, 5.1.2); else the demangled name up to
// its parenthesis decides.
std::string qualified_name(const std::string& demangled) {
    int depth = 0;
    for (std::size_t i = 0; i < demangled.size(); ++i) {
        depth += demangled[i] == '<' ? 1 : demangled[i] == '>' ? -1 : 0;
        if (demangled[i] == '(' && depth == 0 && i > 0) {
            return demangled.substr(0, i);
        }
    }
    return demangled;
}

// std::string as the pre-2011 ABI mangles it: `Ss` among the parameters, and no std::__cxx11
// anywhere.
bool has_old_string(const std::string& mangled) {
    return mangled.find("Ss") != std::string::npos &&
           mangled.find("__cxx11") == std::string::npos &&
           demangle(mangled).find("std::string") != std::string::npos;
}

const Module* mapped_torch(const std::vector<Module>& modules) {
    for (const Module& module : modules) {
        if (file_name(module.path) == "libc10.so") {
            return &module;
        }
    }
    return nullptr;
}

// Exports of the mapped libraries of the family with the same qualified name.
std::vector<std::string> near_matches(const LoaderCase& c, const SymbolOwner& owner,
                                      const std::string& symbol) {
    const std::string wanted = qualified_name(demangle(symbol));
    // Demangling 100,000 names of libtorch_cpu takes long; the plain identifier cuts them down to a
    // few.
    const auto scope = wanted.rfind("::");
    const std::string identifier = scope == std::string::npos ? wanted : wanted.substr(scope + 2);
    std::vector<std::string> found;
    for (const Module& module : c.modules) {
        if (std::count(owner.libraries.begin(), owner.libraries.end(), file_name(module.path)) ==
            0) {
            continue;
        }
        for (const DynamicSymbol& candidate : dynamic_symbols(module.path)) {
            if (candidate.defined && candidate.name != symbol &&
                candidate.name.find(identifier) != std::string::npos &&
                qualified_name(demangle(candidate.name)) == wanted) {
                found.push_back(candidate.name);
            }
        }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

// torch's version by the file that its wheel carries: "2.13.0+cu130".
std::string torch_version_at(const fs::path& torch_directory) {
    std::ifstream file{torch_directory / "version.py"};
    const std::regex pattern{"__version__ *= *'([^']+)'"};
    for (std::string line; std::getline(file, line);) {
        std::smatch match;
        if (line.size() < 200 && std::regex_search(line, match, pattern)) {
            return match[1].str();
        }
    }
    return {};
}

// A JIT build leaves its build.ninja beside the library: its include paths name the torch that
// built it.
std::string built_with(const std::string& library) {
    std::ifstream file{fs::path{library}.parent_path() / "build.ninja"};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    constexpr std::string_view kInclude = "/torch/include";
    const auto at = text.find(kInclude);
    if (at == std::string::npos) {
        return {};
    }
    const auto begin = text.find_last_of(" \t\n", at);
    const std::string directory =
        text.substr(begin + 1, at - begin - 1 + std::string_view{"/torch"}.size());
    const std::string version = torch_version_at(directory.substr(directory.find('/')));
    return version.empty() ? say("{} (no longer there)", directory)
                           : say("{} in {}", version, directory);
}

std::vector<Fix> rebuild_fixes(const LoaderCase& c, const std::string& library,
                               const std::string& torch) {
    std::vector<Fix> fixes;
    std::error_code error;
    const fs::path directory = fs::path{library}.parent_path();
    if (fs::exists(directory / "build.ninja", error)) {
        fixes.push_back(
            {say("throw the cached build away; it is built anew, for the torch that loads it"),
             "rm -r " + shell_quoted(directory.string()), false});
        fixes.push_back(
            {say("and keep a cache for each torch, so that it does not come back"),
             fmt::format("export TORCH_EXTENSIONS_DIR=\"$HOME/.cache/torch_extensions/torch-{}\"",
                         torch),
             false});
        return fixes;
    }
    const auto owner = owner_of(library);
    if (owner && owner->manager == PackageManager::pip) {
        fixes.push_back(
            {say("rebuild {} against the installed torch {}", owner->name, torch),
             pip_install(
                 c, fmt::format("--force-reinstall --no-deps --no-build-isolation --no-cache-dir "
                                "--no-binary {0} '{0}=={1}'",
                                owner->name, owner->version)),
             false});
        fixes.push_back(
            {say("or install the {} wheel that its authors built for torch {}", owner->name, torch),
             "", false});
    } else {
        fixes.push_back(
            {say("rebuild {} with the torch {} that loads it", library, torch), "", false});
    }
    return fixes;
}

}  // namespace

std::optional<Finding> loader_abi_mismatch(const LoaderCase& c) {
    if (c.error.form != ErrorForm::undefined_symbol || c.failure.is_lookup) {
        return std::nullopt;
    }
    const std::string demangled = demangle(c.error.symbol);
    const SymbolOwner* owner = symbol_owner(demangled);
    if (owner == nullptr || owner->family != "torch") {
        return std::nullopt;
    }
    const std::string& library = c.error.subject;
    const Module* torch = mapped_torch(c.modules);
    if (torch == nullptr) {
        Finding finding =
            begin_finding(c, "loader-abi-mismatch",
                          say("{} uses torch ({}), and torch is not in the process yet",
                              file_name(library), demangled));
        finding.evidence["symbol"] = c.error.symbol;
        finding.evidence["demangled"] = demangled;
        finding.evidence["file"] = library;
        finding.evidence["torch"] = say("not loaded");
        finding.fixes.push_back({say("import torch before loading it"), "import torch", false});
        finding.limits = say(
            "whether the library also fits the torch installed shows only once torch is loaded");
        return finding;
    }
    const fs::path torch_directory = fs::path{torch->path}.parent_path().parent_path();
    const std::string torch_version = torch_version_at(torch_directory);
    const std::vector<std::string> near = near_matches(c, *owner, c.error.symbol);
    const bool old_string = has_old_string(c.error.symbol) &&
                            std::any_of(near.begin(), near.end(), [](const std::string& name) {
                                return name.find("__cxx11") != std::string::npos;
                            });
    const std::string built = built_with(library);
    Finding finding = begin_finding(
        c, "loader-abi-mismatch",
        old_string ? say("{} was built with the old C++ string ABI, and torch {} is built "
                         "with the new one",
                         file_name(library), torch_version)
                   : say("{} was built for another torch{}: torch {} has no {}", file_name(library),
                         built.empty() ? "" : say(" ({})", built), torch_version, demangled));
    finding.evidence["symbol"] = c.error.symbol;
    finding.evidence["demangled"] = demangled;
    finding.evidence["file"] = library;
    if (const auto package = owner_of(library)) {
        finding.evidence["package"] =
            say("{} {} ({})", package->name, package->version, name_of(package->manager));
    }
    auto instead = nlohmann::ordered_json::array();
    for (const std::string& name : near) {
        instead.push_back({{"symbol", name}, {"demangled", demangle(name)}});
    }
    finding.evidence["exported_instead"] = std::move(instead);
    finding.evidence["string_abi"] =
        old_string ? say("file: old (_GLIBCXX_USE_CXX11_ABI=0), torch: new (=1)")
                   : say("not the difference");
    finding.evidence["built_with"] = built.empty() ? say("not recorded beside the library") : built;
    finding.evidence["torch"] = torch_version;
    finding.evidence["torch_directory"] = torch_directory.string();
    finding.fixes = rebuild_fixes(c, library, torch_version);
    finding.limits = say(
        "two wheels of one torch release can differ in ABI by their CUDA variant (+cuNNN): compare "
        "the whole version; "
        "which torch the library was built with is known only where its build directory is still "
        "there");
    return finding;
}

}  // namespace cudiag
