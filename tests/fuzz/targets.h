// What a fuzzer does with one input; the unit tests replay seeds and old crashes through the same
// functions.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "diagnose/build/steps.h"
#include "diagnose/cuda/core_dump.h"
#include "diagnose/elf/elf_file.h"
#include "diagnose/elf/fatbin.h"
#include "record/reader.h"

namespace cudiag::fuzz {

// Ends the process, and so the fuzzer's run, when a promise is broken.
inline void promise(bool kept, const char* what) {
    if (!kept) {
        (void)std::fprintf(stderr, "broken promise: %s\n", what);
        std::abort();
    }
}

inline void reader(std::span<const std::byte> bytes) {
    const ReadResult result = parse_recording(bytes);
    if (!result.recording) {
        promise(!result.error.why.empty(), "no recording, and no reason");
        return;
    }
    const Recording& recording = *result.recording;
    std::size_t text_bytes = 0;
    for (const EntryRead& entry : recording.entries) {
        (void)entry.text(Field::path);
        (void)entry.number(Field::pid);
        for (const FieldRead& field : entry.fields) {
            text_bytes += field.text.size();
        }
    }
    promise(text_bytes + recording.entries.size() * sizeof(EntryHead) <= bytes.size(),
            "the events are larger than the file");
    promise(recording.hot.size() * sizeof(HotRecord) <= bytes.size(),
            "the hot records are larger than the file");
}

inline void journal(std::span<const std::byte> bytes) {
    const Recording read = parse_journal(bytes);
    std::size_t text_bytes = 0;
    for (const EntryRead& entry : read.entries) {
        for (const FieldRead& field : entry.fields) {
            text_bytes += field.text.size();
        }
    }
    promise(text_bytes + read.entries.size() * sizeof(EntryHead) <= bytes.size(),
            "the entries are larger than the journal");
    promise(bytes.empty() || !read.entries.empty() || read.lost.any(),
            "nothing was read, and nothing lost");
    const Build build = build_of(read);
    promise(
        build.steps.size() + build.locks.size() + build.build_files.size() <= read.entries.size(),
        "more has happened than was written");
    for (const BuildStep& step : build.steps) {
        (void)step.tool();
        std::size_t above = 0;
        for (const BuildStep* parent = build.parent_of(step); parent != nullptr;
             parent = build.parent_of(*parent)) {
            promise(++above < build.steps.size(), "a step is not above itself");
        }
    }
}

inline void elf(std::span<const std::byte> bytes) {
    // A file without a name: nothing to clean up, whatever happens.
    const int file = memfd_create("elf", MFD_CLOEXEC);
    promise(
        file >= 0 && write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
        "memfd_create works here");
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    const ElfRead read = read_elf(path);
    promise(read.file || read.problem != ElfProblem::none, "no file, and no problem");
    if (read.file) {
        (void)machine_name(read.file->machine, read.file->bits);
    }
    for (const DynamicSymbol& symbol : dynamic_symbols(path)) {
        promise(symbol.name.size() <= bytes.size(), "a symbol longer than the file");
    }
    (void)exports(path, "malloc");
    (void)exports(path, "memcpy", "GLIBC_2.14");
    const std::string found = find_string(path, "GCC: ", 80);
    promise(found.size() <= 80, "find_string keeps its limit");
    (void)close(file);
}

inline void fatbin(std::span<const std::byte> bytes) {
    const int file = memfd_create("fatbin", MFD_CLOEXEC);
    promise(
        file >= 0 && write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
        "memfd_create works here");
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    const auto look = [&bytes](const std::vector<DeviceCode>& code) {
        promise(code.size() * 16 <= bytes.size(), "more images than the file has room for");
        for (std::size_t i = 0; i < code.size(); ++i) {
            promise(code[i].sm > 0 && code[i].sm < 10000, "an architecture that has a number");
            promise(code[i].variant.size() <= 1 && code[i].ptx_version.size() <= 11,
                    "short names of architecture and version");
            promise(i == 0 || code[i - 1] < code[i], "each once, in order");
            (void)runs_on(code[i], 90);
        }
        (void)device_code_words(code);
    };
    look(device_code_in(path));
    for (const std::size_t offset : {std::size_t{0}, std::size_t{8}, bytes.size() / 2}) {
        look(device_code_at(path, offset));
    }
    // A wrapper, wherever it lies: its pointer goes through the relocations.
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::size_t wrapper = text.find(std::string_view{"\xb1\x43\x62\x46", 4});
    if (wrapper != std::string_view::npos) {
        look(device_code_at(path, wrapper));
    }
    (void)close(file);
}

inline void core_dump(std::span<const std::byte> bytes) {
    const int file = memfd_create("core", MFD_CLOEXEC);
    promise(
        file >= 0 && write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
        "memfd_create works here");
    const GpuCore core = read_gpu_core("/proc/self/fd/" + std::to_string(file));
    promise(core.problem.empty() || core.exceptions.empty(), "a file with exceptions was read");
    promise(core.exceptions.size() <= 256, "so many threads are kept, and no more");
    for (const GpuException& exception : core.exceptions) {
        promise(exception.kernel.size() <= bytes.size() &&
                    exception.function.size() <= bytes.size() &&
                    exception.source.size() <= bytes.size() + 32,
                "a name longer than the file");
    }
    (void)close(file);
}

}  // namespace cudiag::fuzz
