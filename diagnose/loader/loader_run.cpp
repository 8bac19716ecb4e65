#include "diagnose/loader/loader_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

namespace cudiag {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostOutput = 16U << 20;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> result;
    result.reserve(texts.size() + 1);
    for (const std::string& text : texts) {
        result.push_back(
            const_cast<char*>(text.c_str()));  // execve takes them so and leaves them alone
    }
    result.push_back(nullptr);
    return result;
}

struct Pipe {
    std::array<int, 2> ends{-1, -1};

    Pipe() {
        if (pipe2(ends.data(), O_CLOEXEC) != 0) {
            ends = {-1, -1};
        }
    }

    ~Pipe() {
        close_end(0);
        close_end(1);
    }

    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    void close_end(std::size_t end) {
        if (ends[end] >= 0) {
            close(ends[end]);
            ends[end] = -1;
        }
    }
};

// posix_spawn rather than fork: it copies no page tables, and tells of a failed exec by its result.
class SpawnActions {
  public:
    SpawnActions(int out, int err, const std::string& cwd) {
        posix_spawn_file_actions_init(&actions_);
        posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions_, out, 1);
        posix_spawn_file_actions_adddup2(&actions_, err, 2);
        if (!cwd.empty()) {
            posix_spawn_file_actions_addchdir_np(&actions_, cwd.c_str());
        }
    }

    ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }

    SpawnActions(const SpawnActions&) = delete;
    SpawnActions& operator=(const SpawnActions&) = delete;

    const posix_spawn_file_actions_t* get() const { return &actions_; }

  private:
    posix_spawn_file_actions_t actions_ = {};
};

// Reads one pipe; false at its end.
bool drain(int fd, std::string& text) {
    std::array<char, 1U << 14> buffer;
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got > 0 && text.size() < kMostOutput) {
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return got > 0 || (got < 0 && errno == EINTR);
}

void collect(Pipe& out, Pipe& err, Clock::time_point deadline, LoaderRun& result) {
    while (out.ends[0] >= 0 || err.ends[0] >= 0) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
        if (left <= 0) {
            result.timed_out = true;
            return;
        }
        std::array<pollfd, 2> waiting{{{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}}};
        if (poll(waiting.data(), waiting.size(), static_cast<int>(left)) < 0 && errno != EINTR) {
            return;
        }
        if (waiting[0].revents != 0 && !drain(out.ends[0], result.out)) {
            out.close_end(0);
        }
        if (waiting[1].revents != 0 && !drain(err.ends[0], result.err)) {
            err.close_end(0);
        }
    }
}

}  // namespace

LoaderRun run_loader(const std::vector<std::string>& command,
                     const std::vector<std::string>& environment, const std::string& cwd,
                     int seconds) {
    LoaderRun result;
    Pipe out;
    Pipe err;
    const std::vector<char*> arguments = pointers(command);
    const std::vector<char*> variables = pointers(environment);
    if (command.empty() || out.ends[0] < 0 || err.ends[0] < 0) {
        result.error_number = command.empty() ? EINVAL : EMFILE;
        return result;
    }
    const auto deadline = Clock::now() + std::chrono::seconds(seconds);
    pid_t child = -1;
    {
        const SpawnActions actions(out.ends[1], err.ends[1], cwd);
        result.error_number = posix_spawn(&child, arguments[0], actions.get(), nullptr,
                                          arguments.data(), variables.data());
    }
    if (result.error_number != 0) {
        return result;
    }
    result.started = true;
    out.close_end(1);
    err.close_end(1);
    collect(out, err, deadline, result);
    if (result.timed_out) {
        kill(child, SIGKILL);
    }
    while (waitpid(child, &result.status, 0) < 0 && errno == EINTR) {
    }
    return result;
}

}  // namespace cudiag
