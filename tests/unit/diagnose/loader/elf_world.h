// A temporary directory with small ELF files in it, made with the system's compiler.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "diagnose/loader/loader_run.h"
#include "diagnose/loader/search.h"

namespace cudiag {

struct LibraryRecipe {
    std::vector<std::string> needs = {};  // paths relative to the world, linked to
    std::string runpath = "";             // "=" before it: DT_RPATH instead
    std::string soname = "";              // "-": none; "": the file's name
    std::string source = "";
    std::string flags = "";
};

class ElfWorld {
  public:
    ElfWorld() {
        char pattern[] = "/tmp/cudiag-world-XXXXXX";
        root_ = mkdtemp(pattern);
    }

    ~ElfWorld() {
        std::error_code ignored;
        std::filesystem::remove_all(root_, ignored);
    }

    ElfWorld(const ElfWorld&) = delete;
    ElfWorld& operator=(const ElfWorld&) = delete;

    std::string path(const std::string& relative = "") const {
        return relative.empty() ? root_ : root_ + "/" + relative;
    }

    // Compiles one shared library and gives its path. Throws with the compiler's words if that
    // fails.
    std::string library(const std::string& relative, const LibraryRecipe& what = {}) const {
        std::string command = what.flags + " -shared";
        const std::string name = relative.substr(relative.rfind('/') + 1);
        if (what.soname != "-") {
            command += " '-Wl,-soname," + (what.soname.empty() ? name : what.soname) + "'";
        }
        return compile(relative, what, command + " -nostdlib -fPIC");
    }

    // The same for a program (linked with libc).
    std::string program(const std::string& relative, LibraryRecipe what = {}) const {
        what.source = what.source.empty() ? "int main(void) { return 0; }" : what.source;
        return compile(relative, what, what.flags);
    }

    std::string text(const std::string& relative, const std::string& content) const {
        make_parent(relative);
        std::ofstream(path(relative)) << content;
        return path(relative);
    }

    std::string link(const std::string& relative, const std::string& target) const {
        make_parent(relative);
        std::filesystem::create_symlink(target, path(relative));
        return path(relative);
    }

    void remove(const std::string& relative) const { std::filesystem::remove_all(path(relative)); }

    LoadState state() const {
        LoadState state;
        state.config = host_loader_config();
        state.cwd = root_;
        return state;
    }

  private:
    void make_parent(const std::string& relative) const {
        std::filesystem::create_directories(std::filesystem::path(path(relative)).parent_path());
    }

    std::string compile(const std::string& relative, const LibraryRecipe& what,
                        const std::string& flags) const {
        make_parent(relative);
        const std::string source = path(relative) + ".c";
        std::ofstream(source) << (what.source.empty() ? "int unused_variable;" : what.source);
        std::string command = "cc -O0 -o '" + path(relative) + "' '" + source + "' " +
                              " -Wl,--no-as-needed -Wl,--allow-shlib-undefined " + flags;
        for (const std::string& needed : what.needs) {
            command += " '" + path(needed) + "'";
        }
        if (!what.runpath.empty()) {
            const bool old = what.runpath.front() == '=';
            command += old ? " -Wl,--disable-new-dtags" : " -Wl,--enable-new-dtags";
            command += " '-Wl,-rpath," + what.runpath.substr(old ? 1 : 0) + "'";
        }
        const LoaderRun run = run_loader({"/bin/sh", "-c", command},
                                         {"PATH=/usr/local/bin:/usr/bin:/bin"}, root_, 60);
        std::filesystem::remove(source);
        if (!run.started || run.status != 0) {
            throw std::runtime_error("cannot build " + relative + ": " + run.err);
        }
        return path(relative);
    }

    std::string root_;
};

}  // namespace cudiag
