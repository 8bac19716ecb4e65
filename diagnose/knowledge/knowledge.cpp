#include "diagnose/knowledge/knowledge.h"

#include <cctype>

#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/cuda_figures.h"
#include "diagnose/knowledge/gpu_exceptions.h"
#include "diagnose/knowledge/gpu_faults.h"
#include "diagnose/knowledge/loaded.h"
#include "diagnose/knowledge/nccl.h"
#include "diagnose/knowledge/optimizer.h"
#include "diagnose/knowledge/ptx_versions.h"
#include "diagnose/knowledge/release_name.h"
#include "diagnose/knowledge/tables.h"
#include "diagnose/knowledge/toolchain.h"

namespace cudiag {
namespace {

const Loaded<LibraryTable>& libraries() {
    static const auto loaded = load_table("libraries.json", parse_libraries);
    return loaded;
}

const Loaded<TorchTable>& torch_table() {
    static const auto loaded = load_table("torch.json", parse_torch);
    return loaded;
}

const Loaded<SymbolTable>& symbols() {
    static const auto loaded = load_table("symbols.json", parse_symbols);
    return loaded;
}

const Loaded<VersionHints>& versions() {
    static const auto loaded = load_table("versions.json", parse_versions);
    return loaded;
}

const Loaded<GnuVersions>& gnu_versions() {
    static const auto loaded = load_table("gnu_versions.json", parse_gnu_versions);
    return loaded;
}

// "2.13" for "2.13.0+cu130" or "2.13"; "" for something else.
std::string release_part(std::string_view version) {
    std::size_t end = 0;
    int dots = 0;
    while (end < version.size() &&
           (std::isdigit(static_cast<unsigned char>(version[end])) != 0 || version[end] == '.')) {
        if (version[end] == '.' && ++dots == 2) {
            break;
        }
        ++end;
    }
    return std::string{version.substr(0, end)};
}

std::string shell_word(const std::string& word) {
    return word.find_first_of("*<>=!~ []") == std::string::npos ? word : "'" + word + "'";
}

}  // namespace

const LibraryRelease* library_release(std::string_view soname) {
    const auto& table = libraries().table.by_soname;
    const auto found = table.find(soname);
    return found == table.end() ? nullptr : &found->second;
}

std::vector<const LibraryRelease*> relatives(std::string_view soname) {
    std::vector<const LibraryRelease*> result;
    const std::string family = library_family(soname);
    if (family.empty()) {
        return result;
    }
    for (const auto& [name, release] : libraries().table.by_soname) {
        if (release.library == family) {
            result.push_back(&release);
        }
    }
    return result;
}

std::string library_family(std::string_view file_name) {
    const auto slash = file_name.rfind('/');
    if (slash != std::string_view::npos) {
        file_name.remove_prefix(slash + 1);
    }
    const auto so = file_name.find(".so");
    if (so == std::string_view::npos || (so + 3 < file_name.size() && file_name[so + 3] != '.')) {
        return {};
    }
    const auto& families = libraries().table.family_of;
    const auto found = families.find(file_name.substr(0, so));
    return found == families.end() ? std::string{} : found->second;
}

std::vector<Provider> providers_for(const LibraryRelease& release, int cuda_major) {
    std::vector<Provider> result;
    for (const Provider& provider : release.providers) {
        if (cuda_major == 0 || provider.cuda_major == 0 || provider.cuda_major == cuda_major) {
            result.push_back(provider);
        }
    }
    return result;
}

Provider for_cuda(const Provider& provider, std::string_view cuda) {
    if (provider.cuda_major != 0 && cuda_major_of(cuda) != provider.cuda_major) {
        return provider;
    }
    return for_cuda_release(provider, cuda, libraries().table.images);
}

std::string install_command(const Provider& provider, std::string_view python) {
    if (provider.manager == "pip") {
        const std::string pip = python.empty() ? "pip" : std::string{python} + " -m pip";
        return pip + " install " + shell_word(provider.package + provider.spec);
    }
    if (provider.manager == "conda") {
        return "conda install -c " + provider.channel + " " + provider.package + provider.spec;
    }
    if (provider.manager == "apt") {
        return "apt-get install " + provider.package + provider.spec;
    }
    return {};
}

const VersionHint* version_hint(std::string_view library) {
    const auto& hints = versions().table;
    const auto found = hints.find(library);
    return found == hints.end() ? nullptr : &found->second;
}

const TorchRelease* torch_release(std::string_view version) {
    const auto& table = torch_table().table.by_version;
    const auto found = table.find(release_part(version));
    return found == table.end() ? nullptr : &found->second;
}

std::vector<const TorchRelease*> all_torch_releases() {
    std::vector<const TorchRelease*> result;
    for (const auto& [version, release] : torch_table().table.by_version) {
        result.push_back(&release);
    }
    return result;
}

std::string companion_release(std::string_view package, std::string_view torch_version) {
    const TorchRelease* torch = torch_release(torch_version);
    if (torch == nullptr || (package != "torchvision" && package != "torchaudio")) {
        return {};
    }
    const std::vector<Pin>& companions =
        package == "torchvision" ? torch->torchvisions : torch->torchaudios;
    const std::string_view patch = torch_version.substr(0, torch_version.find('+'));
    for (const Pin& companion : companions) {
        if (companion.package == patch) {
            return companion.version;
        }
    }
    return companions.empty() ? std::string{} : companions.back().version;
}

std::optional<std::string> first_release_with(std::string_view library, std::string_view symbol) {
    const auto& table = symbols().table;
    const auto found = table.find(std::pair{std::string{library}, std::string{symbol}});
    return found == table.end() ? std::nullopt : std::optional{found->second};
}

std::string brought_by(std::string_view symbol_version) {
    const auto& table = gnu_versions().table;
    const auto found = table.find(symbol_version);
    return found == table.end() ? std::string{} : found->second;
}

std::vector<const LibraryRelease*> all_library_releases() {
    std::vector<const LibraryRelease*> result;
    for (const auto& [soname, release] : libraries().table.by_soname) {
        result.push_back(&release);
    }
    return result;
}

std::vector<std::string> knowledge_problems() {
    std::vector<std::string> problems = toolchain_problems();
    for (const std::vector<std::string>& more :
         {cuda_problems(), gpu_fault_problems(), gpu_exception_problems(), nccl_problems(),
          ptx_problems(), cuda_figure_problems(), optimizer_problems()}) {
        problems.insert(problems.end(), more.begin(), more.end());
    }
    for (const std::string& problem :
         {libraries().problem, torch_table().problem, symbols().problem, versions().problem,
          gnu_versions().problem}) {
        if (!problem.empty()) {
            problems.push_back(problem);
        }
    }
    return problems;
}

}  // namespace cudiag
