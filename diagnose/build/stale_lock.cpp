// build-stale-lock: a program waits for a file called `lock` in a build directory, and whoever made
// it is gone. torch's FileBaton keeps the file open while it lives (torch/utils/file_baton.py), so
// that an open descriptor on this host is an owner.
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/machine.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

struct Holder {
    std::int32_t pid = 0;
    std::string program;
};

std::string program_of(const fs::path& process) {
    std::ifstream file{process / "comm"};
    std::string name;
    std::getline(file, name);
    return name;
}

// Processes that have the file open, or work in the directory: as far as this user may look.
std::vector<Holder> holders_of(const std::string& lock, const std::string& directory,
                               std::int32_t waiting) {
    std::vector<Holder> holders;
    std::error_code error;

    struct stat wanted {};

    if (stat(lock.c_str(), &wanted) != 0) {
        return holders;
    }
    for (const auto& process : fs::directory_iterator("/proc", error)) {
        const int pid = std::atoi(process.path().filename().c_str());
        if (pid <= 0 || pid == waiting) {
            continue;
        }
        bool holds = false;
        for (const auto& descriptor : fs::directory_iterator(process.path() / "fd", error)) {
            struct stat open {};

            if (stat(descriptor.path().c_str(), &open) == 0 && open.st_dev == wanted.st_dev &&
                open.st_ino == wanted.st_ino) {
                holds = true;
                break;
            }
        }
        const fs::path cwd = fs::read_symlink(process.path() / "cwd", error);
        const std::string program = program_of(process.path());
        if (holds || (!error && cwd == directory && program == "ninja")) {
            holders.push_back({pid, program});
        }
    }
    return holders;
}

// A directory that other hosts may write to: an owner there is not seen from here.
bool is_shared(const std::string& path) {
    constexpr long kNfs = 0x6969;         // NFS_SUPER_MAGIC, linux/magic.h
    constexpr long kCeph = 0x00c36400;    // CEPH_SUPER_MAGIC
    constexpr long kLustre = 0x0bd00bd0;  // LL_SUPER_MAGIC, lustre
    constexpr long kGpfs = 0x47504653;
    constexpr long kSmb2 = static_cast<long>(0xfe534d42);
    constexpr long kFuse = 0x65735546;

    struct statfs status {};

    if (statfs(path.c_str(), &status) != 0) {
        return true;
    }
    const auto type = static_cast<long>(status.f_type);
    return type == kNfs || type == kCeph || type == kLustre || type == kGpfs || type == kSmb2 ||
           type == kFuse;
}

// Why an owner might be out of sight; "" if none could be.
std::string blind_spot(const std::string& directory, const struct stat& lock) {
    if (is_shared(directory)) {
        return say(
            "the directory is on a network file system: a build on another host would not be "
            "seen from here");
    }
    if (geteuid() != 0 && lock.st_uid != geteuid()) {
        return say("the lock belongs to another user, whose processes are not seen from here");
    }
    if (const std::string container = observe_machine().container; !container.empty()) {
        return say(
            "this is a container ({}): a build in another one that shares the "
            "directory would not be seen from here",
            container);
    }
    return {};
}

// Not an age: the same lock is told by several processes, and later again.
std::string time_text(std::time_t time) {
    std::tm parts{};
    localtime_r(&time, &parts);
    char text[32];
    return std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts) > 0 ? text : "?";
}

}  // namespace

std::vector<Finding> build_stale_locks(const Facts& facts) {
    std::vector<Finding> findings;
    for (const FileNote& note : facts.build.locks) {
        const std::string directory = directory_of(note.path);
        std::error_code error;

        struct stat status {};

        // A lock that is gone, or not one of a build: nothing to say.
        if (stat(note.path.c_str(), &status) != 0 ||
            !fs::exists(directory + "/build.ninja", error)) {
            continue;
        }
        const bool told = std::any_of(findings.begin(), findings.end(), [&](const Finding& other) {
            return other.evidence["lock"] == note.path;
        });
        const std::vector<Holder> holders = holders_of(note.path, directory, note.pid);
        if (told || !holders.empty()) {
            continue;
        }
        const std::string blind = blind_spot(directory, status);
        const long age = std::max<long>(0, std::time(nullptr) - status.st_mtime);
        Finding finding;
        finding.slug = "build-stale-lock";
        finding.severity = Severity::error;
        finding.confidence = blind.empty() ? Confidence::certain : Confidence::likely;
        finding.title =
            say("waiting for {}, made at {} by a build that is gone: no process has it open{}",
                note.path, time_text(status.st_mtime),
                blind.empty() ? "" : say(" as far as is seen here"));
        finding.time_ns = note.time_ns;
        finding.pid = finding.tid = note.pid;
        finding.python = note.python;
        finding.argv = process_of(facts, note.pid).argv;
        finding.evidence["lock"] = note.path;
        finding.evidence["age_s"] = age;
        finding.evidence["build_directory"] = directory;
        finding.evidence["holders"] = nlohmann::ordered_json::array();
        finding.fixes.push_back(
            {.text = blind.empty()
                         ? say("remove the lock; the waiting program then goes on")
                         : say("if nobody else builds there: remove the lock; the waiting "
                               "program then goes on"),
             .command = fmt::format("rm {}", shell_quoted(note.path))});
        finding.limits = blind;
        findings.push_back(std::move(finding));
    }
    return findings;
}

}  // namespace cudiag
