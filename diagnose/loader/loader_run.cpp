#include "diagnose/loader/loader_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
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

// The child's part between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(char* const* command, char* const* environment, const char* cwd, int out,
                         int err, int failure) {
    const int null = open("/dev/null", O_RDONLY);
    if (dup2(null, 0) >= 0 && dup2(out, 1) >= 0 && dup2(err, 2) >= 0 &&
        (*cwd == '\0' || chdir(cwd) == 0)) {
        execve(command[0], command, environment);
    }
    const int why = errno;
    if (write(failure, &why, sizeof why) != sizeof why) {
        _exit(126);
    }
    _exit(127);
}

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
    Pipe failure;
    const std::vector<char*> arguments = pointers(command);
    const std::vector<char*> variables = pointers(environment);
    if (command.empty() || out.ends[0] < 0 || err.ends[0] < 0 || failure.ends[0] < 0) {
        result.error_number = command.empty() ? EINVAL : EMFILE;
        return result;
    }
    const auto deadline = Clock::now() + std::chrono::seconds(seconds);
    const pid_t child = fork();
    if (child == 0) {
        become(arguments.data(), variables.data(), cwd.c_str(), out.ends[1], err.ends[1],
               failure.ends[1]);
    }
    if (child < 0) {
        result.error_number = errno;
        return result;
    }
    out.close_end(1);
    err.close_end(1);
    failure.close_end(1);
    int why = 0;
    result.started = read(failure.ends[0], &why, sizeof why) != sizeof why;
    result.error_number = why;
    collect(out, err, deadline, result);
    if (result.timed_out) {
        kill(child, SIGKILL);
    }
    while (waitpid(child, &result.status, 0) < 0 && errno == EINTR) {
    }
    return result;
}

}  // namespace cudiag
