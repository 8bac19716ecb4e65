#include "diagnose/knowledge/toolchain.h"

#include <algorithm>
#include <cctype>

#include "diagnose/knowledge/loaded.h"
#include "diagnose/knowledge/release_name.h"
#include "diagnose/knowledge/toolchain_tables.h"

namespace cudiag {
namespace {

const Loaded<HeaderTable>& headers() {
    static const auto loaded = load_table("headers.json", parse_headers);
    return loaded;
}

const Loaded<ToolkitTable>& toolkits() {
    static const auto loaded = load_table("toolkits.json", parse_toolkits);
    return loaded;
}

const Loaded<BuildTextTable>& build_texts() {
    static const auto loaded = load_table("build_texts.json", parse_build_texts);
    return loaded;
}

template <typename Item>
std::vector<const Item*> pointers(const std::vector<Item>& items) {
    std::vector<const Item*> result;
    result.reserve(items.size());
    for (const Item& item : items) {
        result.push_back(&item);
    }
    return result;
}

// "13.0" for "13.0.88", "V13.0.88", "13.0"; as it is for something else.
std::string_view major_minor(std::string_view release) {
    if (!release.empty() && (release.front() == 'V' || release.front() == 'v')) {
        release.remove_prefix(1);
    }
    const auto dot = release.find('.');
    return dot == std::string_view::npos ? release : release.substr(0, release.find('.', dot + 1));
}

// The release to name in a command: "13.0" for "13.0.88", the newest of it for "13" or "13.x", the
// newest of all for "".
std::string release_to_name(std::string_view cuda_release) {
    const auto& newest = headers().table.newest;
    if (cuda_release.empty()) {
        return newest.empty() ? std::string{} : newest.rbegin()->second;
    }
    const std::string_view release = major_minor(cuda_release);
    const auto found = newest.find(release.substr(0, release.find('.')));
    if (release.find('.') == std::string_view::npos || release.substr(release.size() - 2) == ".x") {
        return found == newest.end() ? std::string{} : found->second;
    }
    return std::string{release};
}

// What torch pins a wheel to, if it is of the same CUDA release; else "".
std::string pinned(std::string_view torch_version, const std::string& release,
                   const std::string& package) {
    const TorchRelease* torch =
        torch_version.empty() ? nullptr : cudiag::torch_release(torch_version);
    if (torch == nullptr || torch->cuda != release) {
        return {};
    }
    for (const Pin& pin : torch->pins) {
        if (pin.package == package) {
            return pin.version;
        }
    }
    return {};
}

std::optional<Provider> wheel_provider(const HeaderWheel& wheel, const std::string& release,
                                       std::string_view torch_version) {
    Provider provider;
    provider.manager = "pip";
    provider.package = wheel.package;
    provider.cuda_major = wheel.cuda_major;
    provider.checked = true;
    const auto version = wheel.versions.find(release);
    if (const std::string pin = pinned(torch_version, release, wheel.package); !pin.empty()) {
        provider.spec = "==" + pin;
    } else if (version != wheel.versions.end()) {
        provider.spec = "==" + version->second;
    } else if (wheel.versions.empty()) {
        provider.spec = wheel.spec;
    } else {
        return std::nullopt;
    }
    return provider;
}

// NVIDIA's channel has labels from 11.3 on.
bool has_label(const std::string& release) {
    return compare_releases(release, "11.3") >= 0;
}

// A vendor's provider with a release filled in; nothing if it does not fit or needs an image tag
// that is not known.
std::optional<Provider> vendor_provider(const Provider& pattern, const std::string& release) {
    const int major = cuda_major_of(release);
    const bool newer = pattern.cuda_major == 12 && major > 12;  // conda-forge: 12 and later
    Provider provider = pattern;
    if (pattern.cuda_major != 0 && pattern.cuda_major != major && !newer) {
        return std::nullopt;
    }
    provider.cuda_major = pattern.cuda_major == 0 ? 0 : major;
    provider = for_cuda(provider, release);
    if (const auto label = provider.channel.find("{major}.{minor}"); label != std::string::npos) {
        if (!has_label(release)) {
            return std::nullopt;
        }
        provider.channel.replace(label, std::string_view{"{major}.{minor}"}.size(), release);
    }
    if ((provider.package + provider.spec).find('{') != std::string::npos) {
        return std::nullopt;
    }
    return provider;
}

int rank_of(const Provider& provider) {
    constexpr std::string_view kOrder[] = {"pip", "conda", "apt", "image"};
    return static_cast<int>(std::find(std::begin(kOrder), std::end(kOrder), provider.manager) -
                            std::begin(kOrder));
}

void add_once(std::vector<std::string>& all, const std::string& one) {
    if (std::find(all.begin(), all.end(), one) == all.end()) {
        all.push_back(one);
    }
}

std::string joined(const std::vector<std::string>& words) {
    std::string result;
    for (const std::string& word : words) {
        result += (result.empty() ? "" : " ") + word;
    }
    return result;
}

// Channels and what is asked for beside packages (cuda-version=13.0) are named once.
std::string conda_command(const std::vector<Provider>& providers) {
    std::vector<std::string> channels, packages, also;
    for (const Provider& provider : providers) {
        add_once(channels, "-c " + provider.channel);
        const bool beside = !provider.spec.empty() && provider.spec.front() == ' ';
        add_once(packages, provider.package + (beside ? "" : provider.spec));
        if (beside) {
            add_once(also, provider.spec.substr(1));
        }
    }
    packages.insert(packages.end(), also.begin(), also.end());
    return "conda install " + joined(channels) + " " + joined(packages);
}

// True when a path runs through a directory of an include: "/x/include/ATen/cuda/a.h" and
// "ATen/cuda/".
bool runs_through(std::string_view path, std::string_view directory) {
    const auto at = path.find(directory);
    return at != std::string_view::npos && (at == 0 || path[at - 1] == '/');
}

bool within(std::string_view release, std::string_view from, std::string_view to) {
    return (from.empty() || compare_releases(release, from) >= 0) &&
           (to.empty() || compare_releases(release, to) <= 0);
}

}  // namespace

const HeaderOwner* header_owner(std::string_view header) {
    return find_header_owner(headers().table, header);
}

const HeaderOwner* header_owner_named(std::string_view library) {
    const auto& owners = headers().table.by_library;
    const auto found = owners.find(library);
    return found == owners.end() ? nullptr : found->second;
}

std::vector<Provider> header_providers(const HeaderOwner& owner, std::string_view cuda_release,
                                       std::string_view torch_version) {
    std::vector<Provider> result;
    const std::string release = release_to_name(cuda_release);
    if (!within(release, owner.cuda_from, owner.cuda_to)) {
        return result;
    }
    if (const HeaderWheel* wheel = header_wheel(owner, release)) {
        if (auto provider = wheel_provider(*wheel, release, torch_version)) {
            result.push_back(std::move(*provider));
        }
    }
    for (const Provider& pattern : owner.providers) {
        if (auto provider = vendor_provider(pattern, release)) {
            result.push_back(std::move(*provider));
        }
    }
    std::stable_sort(result.begin(), result.end(),
                     [](const Provider& a, const Provider& b) { return rank_of(a) < rank_of(b); });
    return result;
}

const HeaderWheel* header_wheel(const HeaderOwner& owner, std::string_view cuda_release) {
    const int major = cuda_major_of(release_to_name(cuda_release));
    for (const HeaderWheel& wheel : owner.wheels) {
        if (wheel.cuda_major == major) {
            return &wheel;
        }
    }
    return nullptr;
}

const HeaderGroup* header_group(std::string_view header, std::string_view included_by) {
    for (const HeaderGroup& group : headers().table.groups) {
        if (std::find(group.headers.begin(), group.headers.end(), header) == group.headers.end()) {
            continue;
        }
        for (const std::string& directory : group.included_by) {
            if (runs_through(included_by, directory)) {
                return &group;
            }
        }
    }
    return nullptr;
}

std::vector<ProviderSet> provider_sets(const std::vector<const HeaderOwner*>& owners,
                                       std::string_view cuda_release,
                                       std::string_view torch_version) {
    std::vector<ProviderSet> result;
    for (const char* manager : {"pip", "conda", "apt", "image"}) {
        ProviderSet set{manager, {}};
        std::size_t served = 0;
        for (const HeaderOwner* owner : owners) {
            bool serves = false;
            for (Provider& each : header_providers(*owner, cuda_release, torch_version)) {
                if (each.manager == manager) {
                    serves = true;
                    set.providers.push_back(std::move(each));
                }
            }
            served += serves ? 1 : 0;
        }
        if (served == owners.size() && served != 0) {
            result.push_back(std::move(set));
        }
    }
    return result;
}

std::string install_command(const ProviderSet& set, std::string_view python) {
    if (set.providers.empty()) {
        return {};
    }
    if (set.manager == "conda") {
        return conda_command(set.providers);
    }
    std::vector<std::string> words;
    Provider nothing;
    nothing.manager = set.manager;
    const std::string command = install_command(nothing, python);  // "pip install "
    if (command.empty()) {
        return {};
    }
    for (const Provider& provider : set.providers) {
        add_once(words, install_command(provider, python).substr(command.size()));
    }
    return command + joined(words);
}

const Linkable* linkable(std::string_view name) {
    const auto& linkables = headers().table.linkables;
    if (const auto found = linkables.find(name); found != linkables.end()) {
        return &found->second;
    }
    constexpr std::string_view kPrefix = "lib";
    const auto suffix = name.rfind('.');
    if (name.substr(0, kPrefix.size()) != kPrefix || suffix == std::string_view::npos) {
        return nullptr;
    }
    const auto found = linkables.find(name.substr(kPrefix.size(), suffix - kPrefix.size()));
    return found == linkables.end() || found->second.file != name ? nullptr : &found->second;
}

std::string wheel_library(const Linkable& linkable, std::string_view cuda_release) {
    const HeaderWheel* wheel = header_wheel(*linkable.owner, cuda_release);
    if (wheel == nullptr) {
        return {};
    }
    for (const std::string& file : wheel->library_files) {
        const bool versioned =
            file.size() > linkable.file.size() && file[linkable.file.size()] == '.';
        if (file.rfind(linkable.file, 0) == 0 && (file == linkable.file || versioned)) {
            return wheel->library_directory + "/" + file;
        }
    }
    return {};
}

const ToolkitRelease* toolkit_release(std::string_view release) {
    const std::string_view wanted = major_minor(release);
    for (const ToolkitRelease& each : toolkits().table.releases) {
        if (each.release == wanted) {
            return &each;
        }
    }
    return nullptr;
}

std::vector<const ToolkitRelease*> all_toolkit_releases() {
    return pointers(toolkits().table.releases);
}

std::string architecture_name(std::string_view text) {
    for (const std::string_view prefix : {"compute_", "sm_", "lto_"}) {
        if (text.substr(0, prefix.size()) == prefix) {
            text.remove_prefix(prefix.size());
            break;
        }
    }
    text = text.substr(0, text.find("+PTX"));
    const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    std::string name;
    int dots = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool last = i + 1 == text.size();
        if (digit(c) || (last && i != 0 && digit(text[i - 1]) && (c == 'a' || c == 'f'))) {
            name += c;
        } else if (c != '.' || ++dots > 1 || i == 0 || last) {
            return {};
        }
    }
    return name.size() < 2 ? std::string{} : name;
}

std::optional<bool> compiles_for(const ToolkitRelease& toolkit, std::string_view architecture) {
    const std::string name = architecture_name(architecture);
    if (name.empty() || toolkit.architectures.empty()) {
        return std::nullopt;
    }
    return std::find(toolkit.architectures.begin(), toolkit.architectures.end(), name) !=
           toolkit.architectures.end();
}

std::vector<const BadPair*> bad_pairs(std::string_view a, std::string_view a_release,
                                      std::string_view b, std::string_view b_release) {
    std::vector<const BadPair*> result;
    if (a_release.empty() || b_release.empty()) {
        return result;
    }
    for (const BadPair& pair : toolkits().table.bad_pairs) {
        if (pair.a == a && pair.b == b && within(a_release, pair.a_from, pair.a_to) &&
            within(b_release, pair.b_from, pair.b_to)) {
            result.push_back(&pair);
        }
    }
    return result;
}

std::vector<const BadPair*> all_bad_pairs() {
    return pointers(toolkits().table.bad_pairs);
}

std::vector<BuildText> build_texts_of(std::string_view type, std::string_view message,
                                      const std::vector<std::string>& functions) {
    return find_build_texts(build_texts().table, type, message, functions);
}

std::optional<BuildText> build_text_of(std::string_view type, std::string_view message,
                                       const std::vector<std::string>& functions) {
    std::vector<BuildText> all = build_texts_of(type, message, functions);
    return all.empty() ? std::nullopt : std::optional{std::move(all.front())};
}

std::vector<const BuildTextPattern*> all_build_texts() {
    return pointers(build_texts().table.patterns);
}

std::string package_of_extension(std::string_view module) {
    const auto& packages = build_texts().table.package_of;
    const auto found = packages.find(module);
    return found == packages.end() ? std::string{} : found->second;
}

std::vector<const HeaderOwner*> all_header_owners() {
    return pointers(headers().table.owners);
}

std::vector<const HeaderGroup*> all_header_groups() {
    return pointers(headers().table.groups);
}

std::vector<std::string> toolchain_problems() {
    std::vector<std::string> problems;
    for (const std::string& problem :
         {headers().problem, toolkits().problem, build_texts().problem}) {
        if (!problem.empty()) {
            problems.push_back(problem);
        }
    }
    return problems;
}

}  // namespace cudiag
