// What the benchmarks write into: a recording in memory (/dev/shm) if there is such a place, since
// a benchmark of page write-back would measure the disk.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "record/writer.h"

namespace cudiag::bench {

// Ends the program with a line when it cannot be made: there is nothing to measure then. The file's
// name is removed at once, so that nothing stays behind whatever happens.
class ScratchRecording {
  public:
    explicit ScratchRecording(const Capacity& capacity) {
        const std::string name = "cudiag-bench-" + std::to_string(getpid());
        const std::string place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        const int directory = open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const Identity identity{getpid(), getppid(), getpid(), 1, 1};
        int error = 0;
        if (writer.open(directory, name.c_str(), capacity, identity, &error) != OpenResult::ok) {
            (void)std::fprintf(stderr, "cannot record in %s: error %d\n", place.c_str(), error);
            std::exit(3);
        }
        const int file = openat(directory, name.c_str(), O_RDWR | O_CLOEXEC);
        (void)unlinkat(directory, name.c_str(), 0);
        void* map = mmap(nullptr, sizeof(Header), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        (void)close(file);
        (void)close(directory);
        if (map == MAP_FAILED) {
            (void)std::fprintf(stderr, "cannot map the recording in %s\n", place.c_str());
            std::exit(3);
        }
        header_ = static_cast<Header*>(map);
    }

    ScratchRecording(const ScratchRecording&) = delete;
    ScratchRecording& operator=(const ScratchRecording&) = delete;

    // Begins the log anew. The writer has no such thing, since a log is never overwritten; without
    // it a benchmark would soon measure refusals.
    void rewind() { __atomic_store_n(&header_->log_tail, 0, __ATOMIC_RELAXED); }

    Writer writer;

  private:
    Header* header_ = nullptr;
};

// A failed dlopen as the shim notes it: what was asked, the error's text, by whom, and two frames
// of Python.
inline std::array<FieldValue, 12> failed_load() {
    return {
        FieldValue::of(Field::name, "libcusparse.so.12"),
        FieldValue::of(Field::flags, std::uint64_t{0x102}),
        FieldValue::of(Field::text,
                       "libnvJitLink.so.12: cannot open shared object file: No such file or "
                       "directory"),
        FieldValue::of(Field::caller,
                       "/usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so"),
        FieldValue::of(Field::caller_offset, std::uint64_t{0x7a31}),
        FieldValue::of(Field::snapshot, std::uint64_t{1}),
        FieldValue::of(Field::python_file, "/usr/lib/python3.11/ctypes/__init__.py"),
        FieldValue::of(Field::python_line, std::uint64_t{376}),
        FieldValue::of(Field::python_function, "__init__"),
        FieldValue::of(Field::python_file, "/home/user/project/finetune.py"),
        FieldValue::of(Field::python_line, std::uint64_t{12}),
        FieldValue::of(Field::python_function, "<module>")};
}

}  // namespace cudiag::bench
