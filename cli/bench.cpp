// cudiag bench adam: what this card can do, measured by cudiag-gpu in a process of its own and kept
// for the optimizer's profile.
#include <fmt/chrono.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/runs.h"
#include "diagnose/loader/loader_run.h"
#include "diagnose/optimizer/card.h"
#include "diagnose/say.h"
#include "present/card.h"
#include "present/finding_json.h"
#include "present/spoken.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr int kSeconds =
    900;  // 15 s on an H200; a card with a tenth of its bandwidth takes ten times as long
// What the reference of torch's fused step lay off torch's own on an H200 (docs/gpu-results.md).
constexpr double kReferenceError = 0.02;

std::string gpu_program() {
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    const fs::path program = self.parent_path() / "cudiag-gpu";
    return fs::exists(program, error) ? program.string() : std::string{};
}

// Ours, without what would have the child recorded.
std::vector<std::string> environment_without_shim() {
    std::vector<std::string> environment;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string text = *variable;
        if (text.rfind("LD_PRELOAD=", 0) != 0) {
            environment.push_back(text);
        }
    }
    return environment;
}

std::vector<std::string> command_line(const std::string& program, const BenchOptions& options) {
    std::vector<std::string> command{program, "--device", std::to_string(options.device)};
    if (options.elements != 0) {
        const std::uint64_t tensors = options.tensors == 0 ? 1 : options.tensors;
        command.insert(command.end(), {"--elements", std::to_string(options.elements), "--tensors",
                                       std::to_string(tensors), "--dtype", options.dtype});
    }
    return command;
}

// The last line that it said, without its name.
std::string last_words(std::string text) {
    while (!text.empty() && text.back() == '\n') {
        text.pop_back();
    }
    text.erase(0, text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
    constexpr std::string_view kName = "cudiag-gpu: ";
    return text.rfind(kName, 0) == 0 ? text.substr(kName.size()) : text;
}

// Says why it has no result.
bool complain_of(const LoaderRun& run) {
    if (!run.started) {
        complain(say("cannot start cudiag-gpu (error {})", run.error_number));
    } else if (run.timed_out) {
        complain(say("cudiag-gpu was not done after {} s and was stopped", kSeconds));
    } else if (WIFSIGNALED(run.status)) {
        complain(say("cudiag-gpu was ended by signal {}", WTERMSIG(run.status)));
    } else if (WEXITSTATUS(run.status) != 0) {
        complain(say("cannot measure: {}", last_words(run.err)));
    } else {
        return false;
    }
    return true;
}

// A directory that nobody else could have put there, in a /tmp that all share.
bool make_own_directory(const std::string& path) {
    std::error_code error;
    fs::create_directories(path, error);

    struct stat about {};

    if (lstat(path.c_str(), &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid != geteuid()) {
        return false;
    }
    fs::permissions(path, fs::perms::owner_all, error);
    return true;
}

void keep(const Json& card) {
    const std::string directory = card_directories().front();
    const std::string path =
        fmt::format("{}/{}.json", directory, card["card"]["uuid"].get<std::string>());
    if (make_own_directory(fs::path{directory}.parent_path()) && make_own_directory(directory) &&
        write_whole(path, json_line(card))) {
        fmt::print(stderr, "{}\n", spoken(say("kept in {}: profiles compare with it", path)));
    } else {
        complain(say("could not keep the figures in {}", path));
    }
}

}  // namespace

int bench_adam_command(const BenchOptions& options) {
    if (options.elements == 0 && (options.tensors != 0 || options.dtype != "float32")) {
        complain(say("bench adam: --tensors and --dtype need --elements"));
        return kBadUsage;
    }
    if (options.elements != 0 && options.tensors > options.elements) {
        complain(say("bench adam: more tensors than elements"));
        return kBadUsage;
    }
    const std::string program = gpu_program();
    if (program.empty()) {
        complain(
            say("cudiag-gpu is not beside this command: packages have none, and a build without "
                "nvcc makes none; so nothing can be measured"));
        return kCouldNotRun;
    }
    if (options.elements == 0 && isatty(STDERR_FILENO) != 0) {
        fmt::print(stderr, "{}\n",
                   spoken(say("measuring; the GPU should have nothing else to do")));
    }
    const LoaderRun run =
        run_loader(command_line(program, options), environment_without_shim(), "", kSeconds);
    if (complain_of(run)) {
        return kCouldNotRun;
    }
    Json measured = Json::parse(run.out, nullptr, false);
    if (!measured.is_object()) {
        complain(say("cudiag-gpu gave no figures; is it of another version?"));
        return kCouldNotRun;
    }
    Json file{{"schema", kSchema},
              {"made", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
              {"by", "cudiag " CUDIAG_VERSION}};
    file.update(measured);
    file["fused_error"] = kReferenceError;
    const std::optional<Card> card = card_from_json(file.dump());
    if (!card) {
        complain(say("cudiag-gpu gave figures that cannot be; is it of another version?"));
        return kCouldNotRun;
    }
    if (options.json) {
        fmt::print("{}", json_line(file));
    } else {
        fmt::print("{}", render_card(*card, style_for(1)));
    }
    if (options.elements == 0) {
        keep(file);
    }
    return kNothingFound;
}

}  // namespace cudiag
