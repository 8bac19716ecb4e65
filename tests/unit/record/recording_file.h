// What the tests of record/ share: a directory of their own, a recording in it, and children that
// may be limited, unprivileged or killed without harm to the tests' own process.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "record/format.h"
#include "record/reader.h"
#include "record/writer.h"

namespace cudiag::testing {

// Where the log of a new recording begins.
inline constexpr std::uint64_t kLogBegin = kHeaderBytes + kProgressBytes;

class TemporaryDirectory {
  public:
    TemporaryDirectory() {
        std::string name =
            (std::filesystem::temp_directory_path() / "cudiag-record-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) {
            std::perror("mkdtemp");
            std::abort();
        }
        path_ = name;
        descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }

    ~TemporaryDirectory() {
        (void)close(descriptor_);
        std::error_code ignored;
        std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
        std::filesystem::remove_all(path_, ignored);
    }

    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

    int descriptor() const { return descriptor_; }

    const std::string& path() const { return path_; }

    std::string file(const std::string& name) const { return path_ + "/" + name; }

    std::size_t files() const {
        std::size_t count = 0;
        for (const auto& entry : std::filesystem::directory_iterator(path_)) {
            count += entry.exists() || entry.is_symlink() ? 1 : 0;
        }
        return count;
    }

  private:
    std::string path_;
    int descriptor_ = -1;
};

inline constexpr Identity kIdentity{4711, 815, 42, 1000001, 1000002};

// A recording being written to DIRECTORY/r.
struct OpenRecording {
    explicit OpenRecording(const Capacity& capacity) {
        int error = 0;
        opened = writer.open(directory.descriptor(), "r", capacity, kIdentity, &error);
        EXPECT_EQ(opened, OpenResult::ok) << std::strerror(error);
    }

    std::string path() const { return directory.file("r"); }

    Recording read() const {
        ReadResult result = read_recording(path());
        EXPECT_TRUE(result.recording) << result.error.why;
        return result.recording.value_or(Recording{});
    }

    TemporaryDirectory directory;
    Writer writer;
    OpenResult opened = OpenResult::failed;
};

inline std::vector<std::byte> contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

inline void write_file(const std::string& path, std::span<const std::byte> bytes) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
}

inline constexpr int kCannotRunHere = 77;

// Runs `body` in a child of fork; its return value, or 128 + the signal that ended it.
template <class Body>
int status_of_child(Body body) {
    const pid_t child = fork();
    if (child == 0) {
        _exit(body());
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline bool same(const EntryRead& a, const EntryRead& b) {
    if (a.kind != b.kind || a.tid != b.tid || a.realtime_ns != b.realtime_ns ||
        a.fields.size() != b.fields.size()) {
        return false;
    }
    for (std::size_t i = 0; i < a.fields.size(); ++i) {
        if (a.fields[i].field != b.fields[i].field || a.fields[i].text != b.fields[i].text) {
            return false;
        }
    }
    return true;
}

}  // namespace cudiag::testing
