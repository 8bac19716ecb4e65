// The model of dlopen against real dlopens: a small program opens a library through a caller with a
// DT_RUNPATH (or a DT_RPATH), and both its search by LD_DEBUG=libs and dlerror() must be what the
// model says.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "elf_world.h"
#include "ld_debug_trace.h"

namespace cudiag {
namespace {

constexpr const char* kMark = "=== dlopen ===";

// Prints its link map, then lets CALLER (or itself, for "-") open NAME, and prints dlerror().
constexpr const char* kOpener = R"(
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static void* own(const char* name) { return dlopen(name, RTLD_LAZY); }
int main(int argc, char** argv) {
    void* (*opener)(const char*) = own;
    for (int i = 3; i < argc; ++i) {
        if (dlopen(argv[i], RTLD_LAZY) == NULL) { printf("broken %s\n", dlerror()); return 3; }
    }
    if (strcmp(argv[1], "-") != 0) {
        void* caller = dlopen(argv[1], RTLD_NOW);
        if (caller == NULL) { printf("broken %s\n", dlerror()); return 2; }
        opener = (void* (*)(const char*))dlsym(caller, "opener");
    }
    for (struct link_map* map = _r_debug.r_map; map != NULL; map = map->l_next) printf("module %s\n", map->l_name);
    fflush(stdout);
    if (write(2, "=== dlopen ===\n", 15) != 15) return 1;
    if (opener(argv[2]) == NULL) printf("error %s\n", dlerror());
    fflush(stdout);
    _exit(0);
}
)";

constexpr const char* kCaller = R"(
#include <dlfcn.h>
void* opener(const char* name) { return dlopen(name, RTLD_LAZY); }
)";

struct RealDlopen {
    LoaderTrace trace;
    std::vector<Module> modules;
    std::string error;
    bool ran = false;
};

RealDlopen real_dlopen(const LoadState& state, const std::vector<std::string>& command) {
    RealDlopen real;
    std::vector<std::string> environment{"LD_DEBUG=libs"};
    if (!state.ld_library_path.empty()) {
        environment.push_back("LD_LIBRARY_PATH=" + state.ld_library_path);
    }
    const LoaderRun run = run_loader(command, environment, state.cwd, 60);
    real.trace.events = events_in(run.err, kMark);
    std::istringstream stream(run.out);
    for (std::string line; std::getline(stream, line);) {
        if (line.compare(0, 7, "module ") == 0) {
            Module module;
            module.path = line.substr(7);
            real.modules.push_back(module);
        } else if (line.compare(0, 6, "error ") == 0) {
            real.error = line.substr(6);
        }
    }
    real.ran = run.started && !run.timed_out && !real.modules.empty();
    return real;
}

// The error that dlerror() would give: relocation comes after the search and is not the model's
// matter.
bool same_error(const RealDlopen& real, const Resolution& resolution) {
    const Lookup* missing = resolution.first_missing();
    if (missing == nullptr) {
        for (const VersionClash& clash : resolution.clashes) {
            if (!clash.weak && !clash.provider_has_no_versions) {
                return real.error.find("version `") != std::string::npos;
            }
        }
        return real.error.find("cannot open shared object") == std::string::npos &&
               real.error.find("ELF") == std::string::npos &&
               real.error.find("version `") == std::string::npos;
    }
    return real.error.find(missing->error) != std::string::npos;
}

// A dlopen stops at the first library that is missing; the model goes on, as a trace does.
void cut_after_failure(const std::vector<std::string>& real, std::vector<std::string>& model) {
    if (model.size() > real.size()) {
        model.resize(real.size());
    }
}

class DlopenAgrees : public testing::Test {
  protected:
    DlopenAgrees() {
        state_ = world_.state();
        program_ = world_.program("bin/opener", {{}, "", "", kOpener, "-ldl"});
        state_.executable = program_;
    }

    void expect_equal(const std::string& name, const std::string& caller,
                      const std::vector<std::string>& opened_before = {}) {
        std::vector<std::string> command{program_, caller.empty() ? "-" : caller, name};
        command.insert(command.end(), opened_before.begin(), opened_before.end());
        const RealDlopen real = real_dlopen(state_, command);
        ASSERT_TRUE(real.ran) << name;
        LoadState state = state_;
        state.modules = real.modules;
        resolution_ = resolve_dlopen(state, name, caller);
        LoaderTrace model = model_trace(resolution_);
        if (!real.error.empty()) {
            cut_after_failure(real.trace.events, model.events);
        }
        LoaderTrace only_events;
        only_events.events = real.trace.events;
        model.mapped.clear();
        model.error.clear();
        ++compared_;
        const std::string difference = first_difference(only_events, model);
        EXPECT_EQ(difference, "") << "dlopen of " << name << " by " << caller;
        EXPECT_TRUE(same_error(real, resolution_)) << name << ": " << real.error;
    }

    std::string caller(const std::string& relative, const std::string& runpath,
                       std::vector<std::string> needs = {}) {
        return world_.library(relative, {std::move(needs), runpath, "", kCaller, "-lc"});
    }

    ElfWorld world_;
    LoadState state_;
    std::string program_;
    Resolution resolution_;
    std::size_t compared_ = 0;
};

}  // namespace

TEST_F(DlopenAgrees, TheCallersRunpathCountsForTheAskedNameOnly) {
    world_.library("lib/leaf.so");
    world_.library("lib/mid.so", {{"lib/leaf.so"}});
    const std::string by = caller("caller.so", "$ORIGIN/lib");
    expect_equal("leaf.so", by);
    EXPECT_EQ(resolution_.lookups[0].found, world_.path("lib/leaf.so"));
    expect_equal("mid.so", by);
    ASSERT_NE(resolution_.first_missing(), nullptr);
    EXPECT_EQ(resolution_.first_missing()->name, "leaf.so");
}

TEST_F(DlopenAgrees, ADlopenedLibraryDoesNotInheritTheRpathOfItsOpenerButItsNeededDo) {
    world_.library("lib/leaf.so");
    world_.library("lib/mid.so", {{"lib/leaf.so"}});
    const std::string by = caller("caller.so", "=" + world_.path("lib"));
    expect_equal("mid.so", by);
    EXPECT_EQ(resolution_.lookups[0].found, world_.path("lib/mid.so"));
    EXPECT_EQ(resolution_.first_missing()->name, "leaf.so");
    const std::string linked = caller("linked.so", "=" + world_.path("lib"), {"lib/mid.so"});
    expect_equal("leaf.so", linked);
    EXPECT_TRUE(resolution_.lookups[0].already_loaded);
}

TEST_F(DlopenAgrees, TheRpathOfACallersLoaderCountsToo) {
    world_.library("lib/leaf.so");
    const std::string inner = caller("lib/inner.so", "");
    const std::string outer = caller("outer.so", "=" + world_.path("lib"), {"lib/inner.so"});
    expect_equal("leaf.so", inner, {outer});
    EXPECT_EQ(resolution_.lookups[0].found, world_.path("lib/leaf.so"));
    EXPECT_EQ(resolution_.lookups[0].steps.back().owner, outer);
}

TEST_F(DlopenAgrees, TheProgramsRpathCountsForEveryDlopenItsRunpathForItsOwn) {
    world_.library("lib/leaf.so");
    world_.library("lib/mid.so", {{"lib/leaf.so"}});
    const std::string by = caller("caller.so", "");
    program_ = world_.program("bin/opener", {{}, "=$ORIGIN/../lib", "", kOpener, "-ldl"});
    expect_equal("mid.so", by);
    EXPECT_EQ(resolution_.first_missing(), nullptr);
    program_ = world_.program("bin/opener", {{}, "$ORIGIN/../lib", "", kOpener, "-ldl"});
    expect_equal("mid.so", by);
    EXPECT_EQ(resolution_.lookups[0].found, "");
    expect_equal("mid.so", "");
    EXPECT_EQ(resolution_.first_missing()->name, "leaf.so");
}

TEST_F(DlopenAgrees, AMappedSonameWinsOverEveryPath) {
    world_.library("old/leaf.so.1");
    world_.library("new/leaf.so.1");
    world_.library("top.so", {{"new/leaf.so.1"}, "$ORIGIN/new"});
    state_.ld_library_path = world_.path("new");
    expect_equal(world_.path("top.so"), "", {world_.path("old/leaf.so.1")});
    const Lookup* lookup = resolution_.lookup_of("leaf.so.1");
    ASSERT_NE(lookup, nullptr);
    EXPECT_TRUE(lookup->already_loaded);
    EXPECT_EQ(lookup->found, world_.path("old/leaf.so.1"));
}

TEST_F(DlopenAgrees, AMappedFileIsKnownByItsInodeUnderAnyName) {
    world_.library("lib/leaf.so.1", {{}, "", "-"});
    world_.link("lib/leaf.so", "leaf.so.1");
    const std::string by = caller("caller.so", "$ORIGIN/lib");
    expect_equal("leaf.so", by, {world_.path("lib/leaf.so.1")});
    EXPECT_TRUE(resolution_.lookups[0].already_loaded);
    EXPECT_EQ(resolution_.lookups[0].found, world_.path("lib/leaf.so.1"));
}

TEST_F(DlopenAgrees, OnBadFilesAndNames) {
    world_.text("lib/text.so", std::string(200, 'x'));
    world_.text("lib/short.so", "x");
    world_.text("lib/empty.so", "");
    std::filesystem::create_directories(world_.path("lib/dir.so"));
    world_.link("lib/loop.so", "loop.so");
    world_.library("lib/needs_text.so", {{}, "$ORIGIN", "", "", "-Wl,-soname,x.so"});
    const std::string by = caller("caller.so", "$ORIGIN/lib:$ORIGIN/none");
    for (const char* name :
         {"text.so", "short.so", "empty.so", "dir.so", "loop.so", "nowhere.so"}) {
        expect_equal(name, by);
        expect_equal(world_.path(std::string("lib/") + name), by);
    }
    expect_equal("$ORIGIN/lib/needs_text.so", by);
    expect_equal(program_, by);  // an executable
}

TEST_F(DlopenAgrees, OnRealLibrariesFromACallerWithRunpath) {
    const std::string toolkit = "/usr/local/cuda/lib64";
    const std::string by =
        caller("caller.so", toolkit + ":/nonexistent:$ORIGIN/none:/usr/lib/x86_64-linux-gnu");
    for (const char* name : {"libcudart.so.13", "libcublas.so.13", "libcusparse.so.12",
                             "libcusolver.so.12", "libnvrtc.so.13", "libz.so.1", "libstdc++.so.6",
                             "libgomp.so.1", "libssl.so.3", "libxml2.so.2", "libpython3.11.so.1.0",
                             "libcuda.so.1", "libnvidia-ml.so.1", "libcudnn.so.9"}) {
        expect_equal(name, by);
    }
    state_.ld_library_path = toolkit + "/stubs:" + toolkit;
    for (const char* name :
         {"libcusolver.so.12", "libcusparse.so.12", "libcuda.so", "libcurl.so.4"}) {
        expect_equal(name, by);
        expect_equal(name, "");
    }
    std::cout << "[ compared ] " << compared_ << " dlopens of real names\n";
}

}  // namespace cudiag
