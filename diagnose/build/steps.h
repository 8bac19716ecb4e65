// The build tools that ran in a run, as a tree of steps: the journal's entries turned into nouns.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/finding.h"
#include "record/reader.h"

namespace cudiag {

// Limits in force, and how often the kernel enforced them, at one moment.
struct StepLimits {
    std::string cgroup;  // of memory, below its mount point
    std::uint64_t cgroup_version = 0;
    std::optional<std::uint64_t> memory_limit, memory_peak, oom_kills;
    std::optional<std::uint64_t> process_limit, processes_refused;  // of the cgroup
    std::optional<std::uint64_t> user_process_limit;                // RLIMIT_NPROC
    std::optional<std::uint64_t> mapped_limit;                      // RLIMIT_AS
};

struct OpenedFile {
    std::string path;  // as the program gave it
    bool opened = false;
};

struct BuildStep {
    std::int32_t pid = 0;
    std::int32_t parent = 0;  // nearest ancestor that is no shell; it need not be a step
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = 0;  // 0: it never said
    std::string exe;
    std::vector<std::string> argv;
    bool argv_cut = false;
    std::string cwd;
    std::map<std::string, std::string> environment;  // only of steps that no other step started
    EndHow how = EndHow::none;
    int status = 0;  // as it ended itself
    int signal = 0;  // that killed it, as its parent saw
    std::uint64_t peak_bytes = 0, mapped_bytes = 0;
    StepLimits at_start, at_end;    // at_end: of steps that failed
    std::vector<OpenedFile> opens;  // of steps that failed, the oldest first; the newest are kept

    std::string tool() const;  // "g++", "cc1plus", "nvcc": without a target and a version

    bool failed() const { return signal != 0 || (how != EndHow::none && status != 0); }

    bool ended() const { return how != EndHow::none || signal != 0; }
};

// A program that a process asked for: it could not be started, ended with another status than 0, or
// builds. As its parent saw it.
struct AskedProgram {
    std::uint64_t time_ns = 0;
    std::int32_t pid = 0;  // of the child; of the parent itself where it tried to become it
    std::int32_t parent = 0;
    std::string path;          // "" if unknown; as it was called
    std::string arguments;     // of ninja, make and cmake, cut
    int error = 0;             // errno, if it could not be started
    int status = 0;            // as wait(2) gives it
    std::uint64_t places = 0;  // of PATH where it could not be started
    StepLimits limits;         // of those killed by a signal
};

// A file that a program which is no build tool met: a lock that is held, a build.ninja.
struct FileNote {
    std::uint64_t time_ns = 0;
    std::int32_t pid = 0;
    std::string path;
    std::vector<PythonFrame> python;  // innermost first
};

struct Build {
    std::vector<BuildStep> steps;  // by start; shells that ended with 126 or 127 among them
    std::vector<AskedProgram> asked_programs;
    std::vector<FileNote> locks, build_files;
    Losses lost;

    bool empty() const { return steps.empty() && locks.empty() && build_files.empty(); }

    // The step that ran as this pid at that time; nullptr if none did.
    const BuildStep* step_of(std::int32_t pid, std::uint64_t time_ns) const;
    const BuildStep* last_step_of(std::int32_t pid) const;
    // It began before the step did.
    const BuildStep* parent_of(const BuildStep& step) const;
};

Build build_of(const Recording& journal);

// Of an entry of a recording or of the journal.
AskedProgram asked_program_of(const EntryRead& entry);
std::vector<PythonFrame> frames_of(const EntryRead& entry);

}  // namespace cudiag
