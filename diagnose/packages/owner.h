// Which package put a file there, read from the package managers' own databases (nothing is
// executed). rpm's database (Berkeley DB, ndb or SQLite, by release) is not read: files of an rpm
// system have no owner here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cudiag {

enum class PackageManager : unsigned char { pip, conda, dpkg, rpm };

struct Package {
    PackageManager manager = PackageManager::pip;
    std::string name;      // "nvidia-cusparse-cu12"
    std::string version;   // "12.3.1.170", with the local part: "2.11.0+cu126"
    std::string location;  // site-packages directory, conda prefix; "" for dpkg
    std::string
        metadata;  // the dist-info or egg-info directory, conda-meta file or dpkg list that says so
    std::string installer;  // pip: contents of INSTALLER ("pip", "uv"), "" if it has none
    bool editable = false;  // pip: installed in place; its files lie where its source does
};

// Where to look besides the file's own surroundings.
struct PackagePlaces {
    std::string root;  // prefix of /var/lib/dpkg and of the paths that it lists; "" for "/"
    std::vector<std::string> site_packages;  // their editable packages own files anywhere
};

// The owner of `path` (links resolved and unresolved are both tried), or nothing. pip: RECORD,
// installed-files.txt or direct_url.json of the site-packages directory above it; conda:
// conda-meta/*.json of the prefix; dpkg: /var/lib/dpkg/info/*.list, with /usr-merge and diversions.
// A file that conda or Debian installed into a Python directory is theirs, not pip's. Never throws;
// what cannot be read owns nothing. Files only: a directory has no owner.
std::optional<Package> owner_of(const std::string& path, const PackagePlaces& places = {});

// What last made a package what it is.
struct PackageChange {
    std::string time;    // as the log has it, local: "2026-11-30 06:12:33"
    std::string before;  // the version that it took the place of; "" if it was installed then
};

// From the package manager's log of this month and the one before; nothing if there is none, or it
// tells of other versions than the one that is installed. dpkg alone keeps such a log.
std::optional<PackageChange> last_change(const Package& package, const PackagePlaces& places = {});

// Every installed pip package of a site-packages directory whose normalised name is in `names` (all
// when empty), by name. A package whose metadata was left behind twice is there twice.
std::vector<Package> pip_packages(const std::string& site_packages,
                                  const std::vector<std::string>& names = {});

// One pip package of a site-packages directory by its name, normalised as PEP 503 says.
std::optional<Package> pip_package(const std::string& site_packages, const std::string& name);

// Files that the package's own list names and that are not there, absolute. Left out is what is
// absent on healthy machines: byte code, documentation, and what pip puts outside of site-packages
// (scripts; `pip install -t` moves them).
std::vector<std::string> missing_files(const Package& package, const PackagePlaces& places = {});

// A shared library that two pip packages of one directory both list: the one installed last won.
struct ContestedFile {
    std::string path;   // absolute
    std::string other;  // the other package's name
};

std::vector<ContestedFile> contested_files(const Package& package);

// Shared libraries of a pip package that are not the ones it brought: their size is not the one
// that RECORD notes. Absolute paths, present files only.
std::vector<std::string> altered_files(const Package& package);

// The directory above a path that pip installs into: "site-packages" or "dist-packages" by name, or
// one that holds
// *.dist-info directories (`pip install -t`). "" if there is none.
std::string site_packages_of(const std::string& path);

// <0, 0, >0 as version a is older than, as new as or newer than b. PEP 440 as far as versions of
// wheels go: dotted numbers of any length (1.0 == 1.0.0), dev < a < b < rc < release < post,
// epochs; the local part is ignored. Debian's "1:2.3-4" is read the same way.
int compare_versions(const std::string& a, const std::string& b);

const char* name_of(PackageManager manager);

}  // namespace cudiag
