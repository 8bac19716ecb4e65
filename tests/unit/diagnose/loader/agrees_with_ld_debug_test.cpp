// The model against the loader itself, on real libraries: every file tried, in order, and every
// outcome. By default a sample that takes seconds; CUDIAG_FULL=1 takes all; CUDIAG_WHEELS=DIR adds
// a directory of installed packages, and CUDIAG_LOADERS=LD.SO:LD.SO the loaders of other glibc
// versions (unpacked from their packages; nothing else of those versions is needed, since a trace
// relocates nothing).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <sstream>

#include "ld_debug_trace.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSample = 400;  // files of each source

constexpr const char* kOddPath =
    "/nonexistent:/usr/lib/x86_64-linux-gnu/;:$ORIGIN:/usr/$LIB/../lib:/etc/passwd/x:${ORIGIN}/..:/"
    "opt/$PLATFORM/lib";

bool full() {
    const char* value = std::getenv("CUDIAG_FULL");
    return value != nullptr && *value != '\0' && *value != '0';
}

bool looks_like_library(const fs::path& path) {
    const std::string name = path.filename().string();
    return name.find(".so") != std::string::npos && name.find(".so.debug") == std::string::npos;
}

// Shared libraries below `root` with something NEEDED, each file once.
std::vector<std::string> libraries_below(const fs::path& root, const LoadState& state) {
    std::vector<std::string> found;
    std::set<std::string> seen;
    std::error_code error;
    const auto options = fs::directory_options::skip_permission_denied;
    for (auto entry = fs::recursive_directory_iterator(root, options, error);
         entry != fs::recursive_directory_iterator(); entry.increment(error)) {
        if (error || !looks_like_library(entry->path()) ||
            !fs::is_regular_file(entry->path(), error)) {
            continue;
        }
        const std::string real = fs::canonical(entry->path(), error).string();
        const ElfRead read = read_elf(entry->path().string());
        if (read.file && read.problem == ElfProblem::none && !read.file->needed.empty() &&
            // x32 libraries are of this machine too, and of no use to its programs.
            read.file->machine == host_machine() && read.file->bits == 8 * sizeof(void*) &&
            entry->path().string() != state.config.interpreter && seen.insert(real).second) {
            found.push_back(entry->path().string());
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

std::vector<std::string> sampled(std::vector<std::string> files) {
    if (full() || files.size() <= kSample) {
        return files;
    }
    std::vector<std::string> some;
    for (std::size_t i = 0; i < kSample; ++i) {
        some.push_back(files[i * files.size() / kSample]);
    }
    return some;
}

struct Score {
    std::size_t compared = 0, equal = 0, searches = 0, tries = 0;
    std::vector<std::string> differences;

    void add(const std::string& file, const LoaderTrace& real, const LoaderTrace& model) {
        ++compared;
        const std::string difference = first_difference(real, model);
        equal += difference.empty() ? 1 : 0;
        for (const std::string& event : real.events) {
            searches += event.compare(0, 5, "find ") == 0 ? 1 : 0;
            tries += event.compare(0, 4, "try ") == 0 ? 1 : 0;
        }
        if (!difference.empty() && differences.size() < 10) {
            differences.push_back(file + ": " + difference);
        }
    }

    void report(const std::string& what) const {
        std::cout << "[ compared ] " << what << ": " << equal << " of " << compared
                  << " files equal (" << searches << " searches, " << tries << " files tried)\n";
        for (const std::string& difference : differences) {
            std::cout << "    " << difference << "\n";
        }
    }
};

Score compare(const LoadState& state, const std::vector<std::string>& files) {
    Score score;
    for (const std::string& file : files) {
        const LoaderTrace real = trace_file(state, file);
        if (real.ran) {
            score.add(file, real, model_trace(resolve_program(state, file, {})));
        }
    }
    return score;
}

LoadState host_state() {
    LoadState state;
    state.config = host_loader_config();
    state.cwd = "/";
    return state;
}

std::vector<std::string> system_libraries(const LoadState& state) {
    std::vector<std::string> all;
    std::set<std::string> roots;
    for (const std::string& dir : state.config.system_dirs) {
        std::error_code error;
        const std::string root = fs::canonical(dir, error).string();
        const bool inside = std::any_of(roots.begin(), roots.end(), [&](const std::string& other) {
            return root.compare(0, other.size() + 1, other + "/") == 0;
        });
        if (error || inside || !roots.insert(root).second) {
            continue;
        }
        const std::vector<std::string> some = libraries_below(root, state);
        all.insert(all.end(), some.begin(), some.end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

std::string toolkit_libraries() {
    for (const char* dir : {"/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"}) {
        if (fs::is_directory(dir)) {
            return dir;
        }
    }
    return {};
}

void expect_all_equal(const Score& score, const std::string& what) {
    score.report(what);
    EXPECT_EQ(score.equal, score.compared) << what;
}

}  // namespace

TEST(ModelAgreesWithLdDebug, OnTheSystemsLibraries) {
    const LoadState state = host_state();
    const std::vector<std::string> files = sampled(system_libraries(state));
    ASSERT_GT(files.size(), 20U);
    expect_all_equal(compare(state, files), "system libraries");
}

TEST(ModelAgreesWithLdDebug, OnTheSystemsLibrariesUnderAnOddLdLibraryPath) {
    LoadState state = host_state();
    state.ld_library_path = kOddPath;
    const std::vector<std::string> files = sampled(system_libraries(state));
    expect_all_equal(compare(state, files), "system libraries, odd LD_LIBRARY_PATH");
}

TEST(ModelAgreesWithLdDebug, OnTheCudaToolkit) {
    const std::string dir = toolkit_libraries();
    if (dir.empty()) {
        GTEST_SKIP() << "no CUDA toolkit under /usr/local/cuda";
    }
    LoadState state = host_state();
    const std::vector<std::string> files = sampled(libraries_below(dir, state));
    expect_all_equal(compare(state, files), "CUDA toolkit");
    state.ld_library_path = dir + "/stubs:" + dir;
    expect_all_equal(compare(state, files), "CUDA toolkit, LD_LIBRARY_PATH with its stubs");
}

TEST(ModelAgreesWithLdDebug, OnWheels) {
    const char* wheels = std::getenv("CUDIAG_WHEELS");
    if (wheels == nullptr || !fs::is_directory(wheels)) {
        GTEST_SKIP() << "CUDIAG_WHEELS names no directory";
    }
    LoadState state = host_state();
    const std::vector<std::string> files = sampled(libraries_below(wheels, state));
    expect_all_equal(compare(state, files), "wheels");
    state.ld_library_path = toolkit_libraries() + ":" + wheels;
    expect_all_equal(compare(state, files), "wheels, LD_LIBRARY_PATH with the toolkit");
}

TEST(ModelAgreesWithLdDebug, OnTheLoadersOfOtherVersions) {
    const char* loaders = std::getenv("CUDIAG_LOADERS");
    if (loaders == nullptr) {
        GTEST_SKIP() << "CUDIAG_LOADERS names no loader";
    }
    const LoadState host = host_state();
    std::vector<std::string> files = sampled(system_libraries(host));
    const std::string toolkit = toolkit_libraries();
    if (!toolkit.empty()) {
        const std::vector<std::string> more = sampled(libraries_below(toolkit, host));
        files.insert(files.end(), more.begin(), more.end());
    }
    std::istringstream stream(loaders);
    for (std::string loader; std::getline(stream, loader, ':');) {
        LoadState state = host;
        state.config = loader_config_for(loader);
        ASSERT_FALSE(state.config.system_dirs.empty()) << loader;
        const std::string what = "glibc " + state.config.glibc_version;
        expect_all_equal(compare(state, files), what);
        state.ld_library_path = kOddPath;
        expect_all_equal(compare(state, files), what + ", odd LD_LIBRARY_PATH");
    }
}

}  // namespace cudiag
