#include "diagnose/packages/owner.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "diagnose/packages/databases.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

bool ends_with(std::string_view text, std::string_view end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool under(std::string_view path, std::string_view directory) {
    return path.size() > directory.size() && path.substr(0, directory.size()) == directory;
}

// The path as written and with all links followed: a package may list either.
std::vector<std::string> spellings(const std::string& path) {
    std::error_code error;
    const fs::path absolute = fs::absolute(path, error);
    if (error || path.empty()) {
        return {};
    }
    std::vector<std::string> result{absolute.lexically_normal().string()};
    const fs::path real = fs::canonical(absolute, error);
    if (!error && real.string() != result.front()) {
        result.push_back(real.string());
    }
    return result;
}

// A wheel's metadata in a conda environment or in Debian's dist-packages is written by their
// packages, whose own database then knows the file: asking pip to change it would break them.
bool belongs_to_another(const Package& package) {
    return package.installer == "conda" || package.installer == "debian";
}

std::optional<Package> owner_by_one_spelling(const std::string& path, const PackagePlaces& places) {
    std::optional<Package> pip;
    if (const std::string site = site_packages_of(path); !site.empty()) {
        pip = pip_owner(site, path);
        if (pip && !belongs_to_another(*pip)) {
            return pip;
        }
    }
    if (const std::string prefix = conda_prefix_of(path); !prefix.empty()) {
        if (auto package = conda_owner(prefix, path)) {
            return package;
        }
    }
    if (auto package = dpkg_owner(places.root, path)) {
        return package;
    }
    if (pip) {
        return pip;
    }
    for (const std::string& site : places.site_packages) {
        if (auto package = editable_owner(site, path)) {
            return package;
        }
    }
    return std::nullopt;
}

bool expected_to_be_absent(const std::string& path) {
    constexpr std::array<std::string_view, 5> kDocumentation{
        "/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/info/",
        "/usr/share/lintian/"};
    return ends_with(path, ".pyc") ||
           std::any_of(kDocumentation.begin(), kDocumentation.end(),
                       [&](auto directory) { return under(path, directory); });
}

bool is_shared_library(const ListedFile& file) {
    const std::string name = fs::path{file.path}.filename().string();
    return !file.outside && (ends_with(name, ".so") || name.find(".so.") != std::string::npos);
}

std::vector<ListedFile> files_of(const Package& package, const std::string& root) {
    switch (package.manager) {
        case PackageManager::pip:
            return pip_files(package);
        case PackageManager::conda:
            return conda_files(package);
        case PackageManager::dpkg:
            return dpkg_files(root, package);
        case PackageManager::rpm:
            break;
    }
    return {};
}

}  // namespace

std::string file_text(const std::string& path, std::size_t limit) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) {  // a fifo would be waited for
        return {};
    }
    const auto size = fs::file_size(path, error);
    if (error || size > limit) {
        return {};
    }
    std::ifstream file{path, std::ios::binary};
    std::string text(size, '\0');
    file.read(text.data(), static_cast<std::streamsize>(size));
    text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    return text;
}

std::vector<std::string> entries_ending(const std::string& directory, std::string_view suffix) {
    std::vector<std::string> result;
    std::error_code error;
    for (fs::directory_iterator at{directory, error}, end; !error && at != end;
         at.increment(error)) {
        std::string name = at->path().string();
        if (ends_with(name, suffix)) {
            result.push_back(std::move(name));
        }
    }
    std::sort(result.begin(), result.end());
    return result;
}

std::optional<Package> owner_of(const std::string& path, const PackagePlaces& places) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
        return std::nullopt;
    }
    for (const std::string& spelling : spellings(path)) {
        if (auto package = owner_by_one_spelling(spelling, places)) {
            return package;
        }
    }
    return std::nullopt;
}

std::optional<PackageChange> last_change(const Package& package, const PackagePlaces& places) {
    return package.manager == PackageManager::dpkg ? dpkg_last_change(places.root, package)
                                                   : std::nullopt;
}

std::vector<std::string> missing_files(const Package& package, const PackagePlaces& places) {
    std::vector<std::string> result;
    for (const ListedFile& file : files_of(package, places.root)) {
        std::error_code error;
        const auto status = fs::status(places.root + file.path, error);
        if (!file.outside && status.type() == fs::file_type::not_found &&
            !expected_to_be_absent(file.path)) {
            result.push_back(file.path);
        }
    }
    return result;
}

std::vector<std::string> altered_files(const Package& package) {
    std::vector<std::string> result;
    for (const ListedFile& file : files_of(package, {})) {
        if (!file.size || !is_shared_library(file)) {
            continue;
        }
        std::error_code error;
        const auto size = fs::file_size(file.path, error);
        if (!error && size != *file.size) {
            result.push_back(file.path);
        }
    }
    return result;
}

std::vector<ContestedFile> contested_files(const Package& package) {
    std::vector<ContestedFile> result;
    if (package.manager != PackageManager::pip) {
        return result;  // conda and dpkg refuse such a package, or note a diversion
    }
    std::vector<std::string> own;
    for (const ListedFile& file : pip_files(package)) {
        if (is_shared_library(file)) {
            own.push_back(file.path);
        }
    }
    std::sort(own.begin(), own.end());
    for (const Package& other : pip_packages(package.location)) {
        if (own.empty() || other.metadata == package.metadata) {
            continue;
        }
        for (const ListedFile& file : pip_files(other)) {
            if (std::binary_search(own.begin(), own.end(), file.path)) {
                result.push_back({file.path, other.name});
            }
        }
    }
    return result;
}

std::string site_packages_of(const std::string& path) {
    const fs::path whole = fs::path{path}.lexically_normal();
    for (fs::path at = whole.parent_path(); at.has_relative_path(); at = at.parent_path()) {
        const std::string name = at.filename().string();
        if (name == "site-packages" || name == "dist-packages") {
            return at.string();
        }
    }
    for (fs::path at = whole.parent_path(); at.has_relative_path(); at = at.parent_path()) {
        std::error_code error;
        for (fs::directory_iterator entry{at, error}, end; !error && entry != end;
             entry.increment(error)) {
            if (ends_with(entry->path().native(), ".dist-info") && entry->is_directory(error)) {
                return at.string();
            }
        }
    }
    return {};
}

const char* name_of(PackageManager manager) {
    switch (manager) {
        case PackageManager::pip:
            return "pip";
        case PackageManager::conda:
            return "conda";
        case PackageManager::dpkg:
            return "dpkg";
        case PackageManager::rpm:
            return "rpm";
    }
    return "unknown";
}

}  // namespace cudiag
