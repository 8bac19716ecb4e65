#include "cli/runs.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <pwd.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "diagnose/judge.h"
#include "diagnose/optimizer/analyse.h"
#include "present/finding_json.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kRunsKept = 50;
constexpr std::uintmax_t kBytesKept = 1'000'000'000;

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

Json read_json(const fs::path& path) {
    std::ifstream file{path};
    Json value = file ? Json::parse(file, nullptr, false) : Json{};
    return value.is_object() ? value : Json::object();
}

// Which cards were measured, and when: a profile is compared with them.
std::string cards_state() {
    std::string state;
    for (const std::string& directory : card_directories()) {
        std::error_code error;
        for (const auto& card : fs::directory_iterator(directory, error)) {
            state += fmt::format("{}:{} ", card.path().filename().string(),
                                 card.last_write_time(error).time_since_epoch().count());
        }
    }
    return state;
}

// What of each recording the saved findings are based on.
Json state_of(const Facts& facts) {
    Json state = Json::object();
    for (const Process& process : facts.processes) {
        state[fs::path{process.recording}.filename().string()] =
            fmt::format("{}/{}/{}/{}/{}/{}", process.failures.size(), process.exceptions.size(),
                        process.deaths.size(), process.snapshots.size(),
                        static_cast<int>(process.end), process.alive);
    }
    state["deaths"] = facts.deaths.size();
    for (const RecordedProfile& profile : facts.profiles) {
        state[fs::path{profile.path}.filename().string()] =
            fmt::format("{}/{}/{}", profile.device.size(), profile.steps.size(), cards_state());
    }
    if (!facts.build.empty()) {
        state[kJournalName] = fmt::format(
            "{}/{}/{}/{}/{}", facts.build.steps.size(), facts.build.asked_programs.size(),
            facts.build.locks.size(), facts.build.build_files.size(), facts.root_runs);
    }
    return state;
}

std::vector<Finding> read_saved(const fs::path& path) {
    std::vector<Finding> findings;
    std::ifstream file{path};
    for (std::string line; std::getline(file, line);) {
        const Json value = Json::parse(line, nullptr, false);
        if (value.is_object()) {
            findings.push_back(finding_from_json(value));
        }
    }
    return findings;
}

// "5f0c22d1-1234567-4711": the first 8 digits of the boot id, start ticks and pid of the root.
bool named_by_shim(const std::string& name) {
    return name.size() > 10 && name[8] == '-' &&
           std::all_of(name.begin(), name.end(),
                       [](unsigned char c) { return std::isxdigit(c) != 0 || c == '-'; });
}

std::uintmax_t bytes_in(const fs::path& directory) {
    std::uintmax_t bytes = 0;
    std::error_code error;
    for (const auto& file : fs::directory_iterator(directory, error)) {
        const std::uintmax_t size = file.file_size(error);
        bytes += error ? 0 : size;
    }
    return bytes;
}

bool is_run(const fs::path& directory) {
    std::error_code error;
    for (const auto& file : fs::directory_iterator(directory, error)) {
        const std::string name = file.path().filename().string();
        if (file.path().extension() == ".rec" || name == "findings.jsonl" || name == "run.json" ||
            name == kJournalName) {
            return true;
        }
    }
    return false;
}

bool absolute(const std::string& path) {
    return !path.empty() && path.front() == '/';
}

// Is it writable, or could it be made?
bool can_be_had(fs::path path) {
    while (access(path.c_str(), W_OK | X_OK) != 0) {
        if (errno != ENOENT || !path.has_relative_path()) {
            return false;
        }
        path = path.parent_path();
    }
    return true;
}

// As the shim chooses for runs (shim/run_directory.cpp).
std::string state_directory(const char* of_what) {
    const std::string state = variable("XDG_STATE_HOME");
    const std::string home = variable("HOME");
    std::string directory = absolute(state)  ? state + "/cudiag/"
                            : absolute(home) ? home + "/.local/state/cudiag/"
                                             : "";
    directory += directory.empty() ? "" : of_what;
    if (!directory.empty() && can_be_had(directory)) {
        return directory;
    }
    return fmt::format("/tmp/cudiag-{}/{}", getuid(), of_what);
}

}  // namespace

std::string runs_directory() {
    const std::string directory = variable("CUDIAG_DIR");
    return directory.empty() ? state_directory("runs") : directory;
}

std::vector<std::string> card_directories() {
    std::vector<std::string> directories;
    if (const std::string directory = variable("CUDIAG_DIR"); !directory.empty()) {
        directories.push_back(directory + "/cards");
    }
    directories.push_back(state_directory("cards"));
    return directories;
}

bool write_whole(const std::string& path, const std::string& text) {
    const fs::path draft = path + fmt::format(".{}", getpid());
    {
        std::ofstream file{draft, std::ios::binary};
        file << text;
        file.flush();
        if (!file) {
            std::error_code error;
            fs::remove(draft, error);
            return false;
        }
    }
    std::error_code error;
    fs::permissions(draft, fs::perms::owner_read | fs::perms::owner_write, error);
    fs::rename(draft, path, error);
    return !error;
}

std::vector<std::string> all_runs() {
    std::vector<std::pair<fs::file_time_type, std::string>> runs;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(runs_directory(), error)) {
        if (entry.is_directory(error) && is_run(entry.path())) {
            runs.emplace_back(entry.last_write_time(error), entry.path().string());
        }
    }
    std::sort(runs.rbegin(), runs.rend());
    std::vector<std::string> paths;
    paths.reserve(runs.size());
    for (auto& [time, path] : runs) {
        paths.push_back(std::move(path));
    }
    return paths;
}

std::optional<std::string> find_run(const std::string& name) {
    for (const fs::path& candidate : {fs::path{name}, fs::path{runs_directory()} / name}) {
        std::error_code error;
        if (fs::is_directory(candidate, error)) {
            return candidate.string();
        }
    }
    return std::nullopt;
}

std::string run_directory_of(std::int32_t root_pid, std::uint64_t root_start_ticks) {
    std::ifstream file{"/proc/sys/kernel/random/boot_id"};
    std::string boot;
    std::getline(file, boot);
    return fmt::format("{}/{}-{}-{}", runs_directory(), boot.substr(0, 8), root_start_ticks,
                       root_pid);
}

void remove_run(const std::string& run) {
    std::error_code error;
    if (named_by_shim(fs::path{run}.filename().string())) {
        fs::remove_all(run, error);
    }
}

namespace {

// What processes that were killed left in shared memory (shim/cuda/progress.cpp), a page each.
void prune_marks() {
    constexpr auto kKept = std::chrono::hours{24 * 7};
    const auto now = fs::file_time_type::clock::now();
    std::error_code error;
    const fs::path marks = fmt::format("/dev/shm/cudiag-{}", geteuid());
    for (const auto& file : fs::directory_iterator(marks, error)) {
        const std::string name = file.path().stem().string();
        const fs::path process = "/proc/" + name.substr(name.rfind('-') + 1);
        if (file.path().extension() == ".marks" && !fs::exists(process, error) &&
            now - file.last_write_time(error) > kKept) {
            fs::remove(file.path(), error);
        }
    }
}

}  // namespace

void prune_runs(const std::string& but) {
    prune_marks();
    std::size_t kept = 0;
    std::uintmax_t bytes = 0;
    for (const std::string& run : all_runs()) {
        bytes += bytes_in(run);
        ++kept;
        const bool over = kept > kRunsKept || bytes > kBytesKept;
        std::error_code error;
        if (over && named_by_shim(fs::path{run}.filename().string()) &&
            !fs::equivalent(run, but, error)) {
            fs::remove_all(run, error);
        }
    }
}

std::vector<Profile> profiles_of(const Facts& facts) {
    std::vector<Profile> profiles;
    profiles.reserve(facts.profiles.size());
    for (const RecordedProfile& recorded : facts.profiles) {
        profiles.push_back(analyse(recorded, card_directories()));
    }
    return profiles;
}

std::vector<Finding> without_profiles(std::vector<Finding> findings) {
    findings.erase(
        std::remove_if(findings.begin(), findings.end(),
                       [](const Finding& finding) { return finding.slug == "optimizer-profile"; }),
        findings.end());
    return findings;
}

std::vector<Finding> findings_of(const Facts& facts) {
    const fs::path run{facts.run_directory};
    Json about = read_json(run / "run.json");
    const Json state = state_of(facts);
    std::error_code error;
    if (about.value("judged", Json{}) == state && fs::exists(run / "findings.jsonl", error)) {
        return read_saved(run / "findings.jsonl");
    }
    Machine machine = observe_machine();
    machine.card_directories = card_directories();
    std::vector<Finding> findings = judge(facts, machine);
    std::string lines;
    for (const Finding& finding : findings) {
        lines += json_line(saved_json(finding));
    }
    // A run on a read-only or full disk is told all the same.
    if (write_whole(run / "findings.jsonl", lines)) {
        about["schema"] = kFindingSchema;
        about["judged"] = state;
        (void)write_whole(run / "run.json", json_line(about));
    }
    return findings;
}

void note_death(const std::string& run, std::int32_t pid, int status) {
    Json about = read_json(fs::path{run} / "run.json");
    about["schema"] = kFindingSchema;
    about["deaths"].push_back({{"pid", pid}, {"status", status}});
    (void)write_whole(fs::path{run} / "run.json", json_line(about));
}

std::vector<Finding> claim_for_printing(const std::string& run,
                                        const std::vector<Finding>& findings) {
    const std::string path = run + "/printed";
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) {
        return findings;  // told twice is better than never
    }
    (void)flock(file, LOCK_EX);
    std::set<std::string> told;
    std::ifstream known{path};
    for (std::string line; std::getline(known, line);) {
        told.insert(line);
    }
    std::vector<Finding> fresh;
    for (const Finding& finding : findings) {
        const std::string key = fmt::format("{} {}", finding.slug, json_line(Json(finding.title)));
        if (told.insert(key.substr(0, key.size() - 1)).second) {
            fresh.push_back(finding);
            if (write(file, key.data(), key.size()) < 0) {
                break;
            }
        }
    }
    (void)close(file);
    return fresh;
}

}  // namespace cudiag
