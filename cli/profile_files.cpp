#include "cli/profile_files.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "cli/commands.h"
#include "diagnose/say.h"
#include "present/perfetto.h"
#include "present/profile_html.h"
#include "present/spoken.h"
#include "present/tensorboard.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

// The caller's own file, with the permissions that the caller's files have.
bool write_file(const std::string& path, const std::string& bytes) {
    errno = 0;
    std::ofstream file{path, std::ios::binary | std::ios::trunc};
    file << bytes;
    file.flush();
    if (!file) {
        complain(say("cannot write {}: {}", path, std::strerror(errno)));
        return false;
    }
    fmt::print(stderr, "{}\n", spoken(say("written: {}", path)));
    return true;
}

std::string host_name() {
    std::array<char, 256> name{};
    return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "host";
}

bool write_events(const std::vector<Profile>& profiles, const std::string& directory) {
    std::error_code error;
    fs::create_directories(directory, error);
    if (error) {
        complain(say("cannot make the directory {}: {}", directory, error.message()));
        return false;
    }
    constexpr std::uint64_t kNano = 1'000'000'000;
    const auto seconds = static_cast<std::int64_t>(profiles.front().begin / kNano);
    return write_file(directory + "/" + tensorboard_file_name(seconds, host_name()),
                      tensorboard_events(profiles));
}

}  // namespace

int write_profile_files(const std::vector<Profile>& profiles, const ProfileFiles& files,
                        const std::string& run) {
    if (profiles.empty()) {
        complain(say("{} has no profile: run the program with CUDIAG_PROFILE=optimizer", run));
        return kCouldNotRun;
    }
    const std::string name = fs::path{run}.filename().string();
    const bool written =
        (files.html.empty() || write_file(files.html, profile_html(profiles, name))) &&
        (files.perfetto.empty() || write_file(files.perfetto, perfetto_trace(profiles))) &&
        (files.tensorboard.empty() || write_events(profiles, files.tensorboard));
    return written ? kNothingFound : kCouldNotRun;
}

}  // namespace cudiag
