// One reader for each package manager's database; owner.h is the door to them. All take absolute,
// normalised paths.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/packages/owner.h"

namespace cudiag {

// Whole contents; "" if the file cannot be read or is larger than `limit` bytes (nobody's package
// list is).
std::string file_text(const std::string& path, std::size_t limit = std::size_t{256} << 20);

// Absolute names of a directory's entries that end in `suffix`, sorted; none if it cannot be read.
std::vector<std::string> entries_ending(const std::string& directory, std::string_view suffix);

// One entry of a package's list of files.
struct ListedFile {
    std::string path;                   // absolute
    std::optional<std::uint64_t> size;  // where the list tells it
    bool outside = false;               // not below the package's location
};

// pip.cpp
std::optional<Package> pip_owner(const std::string& site_packages, const std::string& path);
std::optional<Package> editable_owner(const std::string& site_packages, const std::string& path);
std::vector<ListedFile> pip_files(const Package& package);

// conda.cpp. The prefix is the directory above the path that has a conda-meta; "" if none has.
std::string conda_prefix_of(const std::string& path);
std::optional<Package> conda_owner(const std::string& prefix, const std::string& path);
std::vector<ListedFile> conda_files(const Package& package);

// dpkg.cpp
std::optional<Package> dpkg_owner(const std::string& root, const std::string& path);
std::vector<ListedFile> dpkg_files(const std::string& root, const Package& package);
std::optional<PackageChange> dpkg_last_change(const std::string& root, const Package& package);

}  // namespace cudiag
