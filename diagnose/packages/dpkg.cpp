// dpkg's database: /var/lib/dpkg/info/PACKAGE[:ARCH].list, one path a line; /var/lib/dpkg/status;
// and /var/lib/dpkg/diversions, three lines an entry: path, where it was moved, the package that
// did it (dpkg-divert(1)). /var/log/dpkg.log (dpkg(1), --log), and what logrotate made of it last:
// "2026-11-30 06:12:33 upgrade PACKAGE:ARCH OLD NEW", also "install", with "<none>" as OLD.
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <mutex>
#include <sstream>

#include "diagnose/packages/databases.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

bool has_line(const std::string& text, const std::string& line) {
    for (auto at = text.find(line); at != std::string::npos; at = text.find(line, at + 1)) {
        const auto end = at + line.size();
        if ((at == 0 || text[at - 1] == '\n') && (end == text.size() || text[end] == '\n')) {
            return true;
        }
    }
    return false;
}

// On a merged /usr the packages still list /lib/x, or already /usr/lib/x, for the one file.
std::vector<std::string> aliases(const std::string& root, const std::string& path) {
    constexpr std::array<std::string_view, 6> kMerged{"/bin/",   "/sbin/",  "/lib/",
                                                      "/lib32/", "/lib64/", "/libx32/"};
    std::vector<std::string> result{path};
    const std::string stripped = path.rfind("/usr/", 0) == 0 ? path.substr(4) : path;
    for (const std::string_view directory : kMerged) {
        std::error_code error;
        const std::string link = root + std::string{directory.substr(0, directory.size() - 1)};
        if (stripped.rfind(directory, 0) == 0 && fs::is_symlink(link, error)) {
            result.push_back(stripped == path ? "/usr" + path : stripped);
        }
    }
    return result;
}

struct Diversion {
    std::string original, moved_to, by;
};

std::vector<Diversion> diversions(const std::string& root) {
    std::vector<Diversion> result;
    std::istringstream file{file_text(root + "/var/lib/dpkg/diversions")};
    for (Diversion entry; std::getline(file, entry.original) &&
                          std::getline(file, entry.moved_to) && std::getline(file, entry.by);) {
        result.push_back(entry);
    }
    return result;
}

// A package may ship files below these only (Debian policy 9.1: the Filesystem Hierarchy Standard):
// most files that are asked about, those of home directories and caches, need no search.
bool can_be_packaged(const std::string& path) {
    constexpr std::array<std::string_view, 12> kTops{"bin",   "boot",  "etc",    "lib",
                                                     "lib32", "lib64", "libx32", "opt",
                                                     "sbin",  "srv",   "usr",    "var"};
    const std::string_view rest =
        std::string_view{path}.substr(std::min<std::size_t>(path.size(), 1));
    return std::find(kTops.begin(), kTops.end(), rest.substr(0, rest.find('/'))) != kTops.end();
}

struct List {
    std::string file, text;
};

// All lists of one system. One explanation asks for a dozen owners, and reading 1,500 lists takes
// 50 ms: they are kept until the directory changes (dpkg renames new lists into it).
std::shared_ptr<const std::vector<List>> lists(const std::string& root) {
    static std::mutex mutex;
    static std::string kept_root;
    static fs::file_time_type kept_time;
    static std::shared_ptr<const std::vector<List>> kept;
    const std::lock_guard lock{mutex};
    std::error_code error;
    const std::string directory = root + "/var/lib/dpkg/info";
    const auto time = fs::last_write_time(directory, error);
    if (error) {
        return std::make_shared<const std::vector<List>>();
    }
    if (!kept || kept_root != root || kept_time != time) {
        auto fresh = std::make_shared<std::vector<List>>();
        for (std::string& file : entries_ending(directory, ".list")) {
            std::string text = file_text(file);
            fresh->push_back({std::move(file), std::move(text)});
        }
        kept = std::move(fresh);
        kept_root = root;
        kept_time = time;
    }
    return kept;
}

// "libc6" of ".../libc6:amd64.list".
std::pair<std::string, std::string> name_and_architecture(const std::string& list) {
    const std::string stem = fs::path{list}.stem().string();
    const auto colon = stem.find(':');
    return {stem.substr(0, colon), colon == std::string::npos ? "" : stem.substr(colon + 1)};
}

std::string field(std::string_view paragraph, std::string_view key) {
    const std::string start = "\n" + std::string{key} + ": ";
    const auto at = paragraph.find(start);
    if (at == std::string_view::npos) {
        return {};
    }
    const std::string_view rest = paragraph.substr(at + start.size());
    return std::string{rest.substr(0, rest.find('\n'))};
}

std::string version_of(const std::string& status, const std::string& name,
                       const std::string& architecture) {
    const std::string start = "Package: " + name + "\n";
    for (auto at = status.find(start); at != std::string::npos; at = status.find(start, at + 1)) {
        const auto end = std::min(status.find("\n\n", at), status.size());
        const std::string_view paragraph = std::string_view{status}.substr(at, end - at);
        if ((at == 0 || status[at - 1] == '\n') &&
            (architecture.empty() || field(paragraph, "Architecture") == architecture)) {
            return field(paragraph, "Version");
        }
    }
    return {};
}

Package package_of(const std::string& root, const std::string& list) {
    const auto [name, architecture] = name_and_architecture(list);
    Package package;
    package.manager = PackageManager::dpkg;
    package.name = name;
    package.version = version_of(file_text(root + "/var/lib/dpkg/status"), name, architecture);
    package.metadata = list;
    return package;
}

}  // namespace

std::optional<Package> dpkg_owner(const std::string& root, const std::string& path) {
    if (!can_be_packaged(path)) {
        return std::nullopt;
    }
    std::string not_of, only_of;
    std::vector<std::string> names = aliases(root, path);
    for (const Diversion& diversion : diversions(root)) {
        for (std::string& name : names) {
            if (diversion.moved_to == name) {  // the file of the package that was pushed aside
                name = diversion.original;
                not_of = diversion.by;
            } else if (diversion.original == name) {
                only_of = diversion.by == ":" ? "" : diversion.by;  // ":" is a local one: nobody's
                if (only_of.empty()) {
                    return std::nullopt;
                }
            }
        }
    }
    const auto all = lists(root);
    for (const List& list : *all) {
        const std::string package = name_and_architecture(list.file).first;
        if (package == not_of || (!only_of.empty() && package != only_of)) {
            continue;
        }
        for (const std::string& name : names) {
            if (has_line(list.text, name)) {
                return package_of(root, list.file);
            }
        }
    }
    return std::nullopt;
}

std::vector<ListedFile> dpkg_files(const std::string& root, const Package& package) {
    std::vector<ListedFile> files;
    const auto moved = diversions(root);
    std::istringstream list{file_text(package.metadata)};
    for (std::string line; std::getline(list, line);) {
        for (const Diversion& diversion : moved) {
            if (diversion.original == line && diversion.by != package.name) {
                line = diversion.moved_to;
                break;
            }
        }
        if (line.size() > 2) {  // "/." is the root
            files.push_back({line, std::nullopt, false});
        }
    }
    return files;
}

std::optional<PackageChange> dpkg_last_change(const std::string& root, const Package& package) {
    std::optional<PackageChange> last;
    for (const char* log : {"/var/log/dpkg.log.1", "/var/log/dpkg.log"}) {
        std::istringstream file{file_text(root + log)};
        for (std::string line; std::getline(file, line);) {
            std::istringstream words{line};
            std::string date, time, action, name, before, after;
            words >> date >> time >> action >> name >> before >> after;
            if ((action == "upgrade" || action == "install") &&
                name.substr(0, name.find(':')) == package.name && after == package.version) {
                last = {date + " " + time, before == "<none>" ? "" : before};
            }
        }
    }
    return last;
}

}  // namespace cudiag
