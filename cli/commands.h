// The subcommands. Each returns the exit status: 0 nothing found, 1 findings of severity error, 2
// bad usage, 3 could not run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/profile_files.h"

namespace CLI {
class App;
}

namespace cudiag {

inline constexpr int kNothingFound = 0;
inline constexpr int kFound = 1;
inline constexpr int kBadUsage = 2;
inline constexpr int kCouldNotRun = 3;

struct RunOptions {
    std::vector<std::string> command;
};

int run_command(const RunOptions& options);

struct ReportOptions {
    std::string run;  // directory or name; "" for the last
    bool json = false;
    bool list = false;
    ProfileFiles profile_files;  // written instead of the report
};

int report_command(const ReportOptions& options);

int explain_command(const std::string& slug);  // "" lists the slugs

struct ExplainedFinding {
    std::string_view slug;
    std::string_view meaning;  // one line
};

// All findings that have a text, sorted.
std::vector<ExplainedFinding> explained_findings();

struct LibsOptions {
    std::string target;  // a file or a pid
    bool json = false;
};

int libs_command(const LibsOptions& options);

int lib_command();

struct DoctorOptions {
    std::string python;  // a path or a name of PATH; "" for the one that the environment leads to
    bool json = false;
    bool build = false;   // really compile an extension
    bool launch = false;  // really launch a kernel
    bool fix = false;
    bool dry_run = false;
    bool yes = false;
};

int doctor_command(const DoctorOptions& options);

struct BenchOptions {
    std::uint64_t elements = 0;  // one size instead of all, which is not kept; 0: all
    std::uint64_t tensors = 0;   // 0: one
    std::string dtype = "float32";
    int device = 0;  // as CUDA counts
    bool json = false;
};

int bench_adam_command(const BenchOptions& options);

struct InPlaceOptions {
    std::string run;
    int pid = 0;
    std::string when = "exit";  // "exit", "early", "lock", "build"
};

int in_place_command(const InPlaceOptions& options);

// For the shells' completion: candidates for the last of the words behind "cudiag", one a line,
// WORD<TAB>MEANING; ":files" and ":commands" are for the shell to fill in.
int complete_command(const CLI::App& app, const std::vector<std::string>& words);

// One clear line on stderr: "cudiag: WHAT".
void complain(const std::string& what);

// Absolute path of libcudiag.so: beside the command, or in ../lib, ../lib64 or ../lib/TRIPLET of
// it;
// "" if it is not there.
std::string shim_path();

}  // namespace cudiag
