#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/file_version.h"
#include "diagnose/loader/library_path.h"
#include "diagnose/loader/rules.h"
#include "diagnose/loader/wrong_copy.h"
#include "diagnose/packages/requirements.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

// A directory that exists for a dry run only.
class ScratchDirectory {
  public:
    ScratchDirectory() {
        std::string pattern = (fs::temp_directory_path() / "cudiag-XXXXXX").string();
        if (mkdtemp(pattern.data()) != nullptr) {
            path_ = pattern;
        }
    }

    ~ScratchDirectory() {
        std::error_code error;
        if (!path_.empty()) {
            fs::remove_all(path_, error);
        }
    }

    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;

    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

// Was the directory of `file` looked in before the search ended?
bool searched_in(const std::vector<SearchStep>& steps, const std::string& directory) {
    return std::any_of(steps.begin(), steps.end(), [&](const SearchStep& step) {
        std::error_code error;
        return step.dir == directory || fs::equivalent(step.dir, directory, error);
    });
}

// The link that is gone, proved by a scratch directory that holds it and is searched first.
Fix restore_link(const LoaderCase& c, const Copy& copy, const std::string& soname) {
    const fs::path file{copy.path};
    Fix fix{say("put the link {} back", (file.parent_path() / soname).string()),
            fmt::format("ln -s {} {}", shell_quoted(file.filename().string()),
                        shell_quoted((file.parent_path() / soname).string())),
            false};
    const ScratchDirectory scratch;
    std::error_code error;
    fs::create_symlink(fs::absolute(file, error), fs::path{scratch.path()} / soname, error);
    if (!scratch.path().empty() && !error) {
        fix.proved =
            proved_with_library_path(c, with_directory(c.state.ld_library_path, scratch.path()));
    }
    return fix;
}

std::optional<Finding> lost_link(const LoaderCase& c, const std::string& soname) {
    const Source source = source_of(c, soname, c.error.subject);
    for (const Copy& copy : copies_near(c, soname, source.searched)) {
        const std::string directory = fs::path{copy.path}.parent_path().string();
        std::error_code error;
        const bool helps = copy.why_not.empty() && !copy.named &&
                           searched_in(source.searched, directory) &&
                           !fs::exists(fs::path{directory} / soname, error) &&
                           (c.error.form != ErrorForm::missing_version ||
                            defines_version(copy.path, c.error.version));
        if (!helps) {
            continue;
        }
        Finding finding = begin_finding(
            c, "package-broken",
            say("{} is there, but without its link {}, so ld.so passed it by", copy.path, soname));
        finding.evidence["path"] = fmt::format("{}/{}", directory, soname);
        finding.evidence["file"] = copy.path;
        finding.evidence["what_it_is"] =
            fmt::format("SONAME {}{}{}", copy.soname, copy.version.empty() ? "" : say(", version "),
                        copy.version);
        if (const auto owner = owner_of(copy.path)) {
            finding.evidence["package"] =
                say("{} {} ({})", owner->name, owner->version, name_of(owner->manager));
        }
        finding.evidence["taken_instead"] = source.path;
        finding.evidence["searched"] = searched_json(source.searched);
        finding.fixes.push_back(restore_link(c, copy, soname));
        finding.limits =
            say("does not know who removed the link; installing the package again restores it too");
        return finding;
    }
    return std::nullopt;
}

// A wheel is installed, and the file it should have brought is not there.
std::optional<Finding> lost_file(const LoaderCase& c, const std::string& soname) {
    const LibraryRelease* release = library_release(soname);
    if (release == nullptr) {
        return std::nullopt;
    }
    for (const std::string& site : site_packages_dirs(c.process, c.modules)) {
        for (const Provider& provider : release->providers) {
            const auto package =
                provider.manager == "pip" ? pip_package(site, provider.package) : std::nullopt;
            if (!package) {
                continue;
            }
            const std::vector<std::string> missing = missing_files(*package);
            const auto lost =
                std::find_if(missing.begin(), missing.end(),
                             [&](const std::string& path) { return file_name(path) == soname; });
            if (lost == missing.end()) {
                continue;
            }
            Finding finding = begin_finding(c, "package-broken",
                                            say("{} {} is installed, but its file {} is gone",
                                                package->name, package->version, soname));
            finding.evidence["package"] = say("{} {} (pip)", package->name, package->version);
            finding.evidence["path"] = *lost;
            finding.evidence["what_it_is"] = say("absent");
            finding.evidence["missing_files"] = missing;
            finding.fixes.push_back(
                {say("install the package again, files and all"),
                 pip_install(c, fmt::format("--force-reinstall --no-deps '{}=={}'", package->name,
                                            package->version)),
                 false});
            finding.limits = say("does not know who removed the file");
            return finding;
        }
    }
    return std::nullopt;
}

// Does the file differ from what this package brought (by the size that its RECORD notes)?
bool is_altered(const Package& package, const std::string& path) {
    const std::vector<std::string> altered = altered_files(package);
    return std::any_of(altered.begin(), altered.end(), [&](const std::string& file) {
        std::error_code error;
        return file == path || fs::equivalent(file, path, error);
    });
}

// Two wheels list the file that lacks the symbol: the one installed last has won.
std::optional<Finding> written_twice(const LoaderCase& c) {
    const std::string soname = expected_soname(c, c.error.subject);
    const Source source = soname.empty() ? Source{} : source_of(c, soname, c.error.subject);
    const auto owner = source.path.empty() ? std::nullopt : owner_of(source.path);
    if (!owner || owner->manager != PackageManager::pip) {
        return std::nullopt;
    }
    for (const ContestedFile& contested : contested_files(*owner)) {
        std::error_code error;
        const auto other = pip_package(owner->location, contested.other);
        if (!other || !fs::equivalent(contested.path, source.path, error)) {
            continue;
        }
        const auto user = owner_of(c.error.subject);
        const Package* wanted = nullptr;
        for (const Package* package : {&*owner, &*other}) {
            if (user && requirement_on(*user, package->name)) {
                wanted = package;
            }
        }
        const Package& real = is_altered(*owner, source.path) ? *other : *owner;
        Finding finding = begin_finding(
            c, "package-broken",
            say("{} {} and {} {} both bring {}, and the one installed last has won: it lacks {}",
                owner->name, owner->version, other->name, other->version, source.path,
                c.error.symbol.empty() ? c.error.version : demangle(c.error.symbol)));
        finding.evidence["path"] = source.path;
        finding.evidence["packages"] = {owner->name + " " + owner->version,
                                        other->name + " " + other->version};
        finding.evidence["what_it_is"] = say("the file of {} {} (by its size); version {}",
                                             real.name, real.version, file_version(source.path));
        finding.evidence["needed_by"] = c.error.subject;
        const std::string keep = wanted != nullptr
                                     ? fmt::format("{}=={}", wanted->name, wanted->version)
                                     : std::string{};
        finding.fixes.push_back(
            {say("remove both, and install the one that is required: removing only one takes the "
                 "file "
                 "from the other too"),
             keep.empty()
                 ? std::string{}
                 : fmt::format(
                       "{0} -m pip uninstall -y {1} {2} && {0} -m pip install --no-deps {3}",
                       python_command(c.process), owner->name, other->name, shell_quoted(keep)),
             false});
        finding.limits = say("which of the two wrote the file is told by its size alone");
        return finding;
    }
    return std::nullopt;
}

}  // namespace

std::optional<Finding> package_broken(const LoaderCase& c) {
    if (c.error.form == ErrorForm::undefined_symbol && !c.failure.is_lookup) {
        return written_twice(c);
    }
    if (c.error.form == ErrorForm::missing_version) {
        return lost_link(c, file_name(c.error.provider));
    }
    if (c.error.form != ErrorForm::missing_file || c.error.subject.find('/') != std::string::npos) {
        return std::nullopt;
    }
    if (auto finding = lost_link(c, c.error.subject)) {
        return finding;
    }
    return lost_file(c, c.error.subject);
}

}  // namespace cudiag
