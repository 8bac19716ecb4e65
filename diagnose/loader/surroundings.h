// The places around a process where a library that it misses may lie, and what lies there: its
// wheels, conda, toolkits, ld.so.cache. Looks only at directories that the process's own files,
// paths and environment point to.
#pragma once

#include <string>
#include <vector>

#include "diagnose/facts.h"
#include "diagnose/loader/search.h"
#include "diagnose/packages/owner.h"

namespace cudiag {

// Site-packages directories of the process, the interpreter's own first.
std::vector<std::string> site_packages_dirs(const Process& process,
                                            const std::vector<Module>& modules);

// The interpreter to use in commands: the venv's or conda's python, else the process's executable;
// "python3" if it was no Python. Shell-quoted.
std::string python_command(const Process& process);
bool is_python(const Process& process);

// A file on this machine that has to do with a library somebody misses.
struct Copy {
    std::string path;       // as found
    std::string real_path;  // links resolved
    std::string soname;
    std::string version;       // by file_version
    bool same_soname = false;  // would satisfy the name
    bool fits_machine = false;
    bool stub = false;
    bool named =
        false;  // a file of exactly the wanted name stands there (ld.so finds files by name)
    std::string why_not;  // why it is no substitute; "" if it is one
};

// Every copy of `soname`, or of another version of the same library, in the surroundings and in the
// directories `searched`. Those
// that would satisfy it come first, then by path.
std::vector<Copy> find_copies(const std::string& soname, const Process& process,
                              const std::vector<Module>& modules, const LoaderConfig& config,
                              const std::vector<std::string>& searched = {});

// Is this a stub of the driver: a file in a toolkit's stubs directory, or one that says so itself?
bool is_stub(const std::string& path);

// "…/libcudart.so.12 (12.4.127, nvidia-cuda-runtime-cu12 12.4.127 by pip)": a file for people to
// recognise.
std::string describe_file(const std::string& path);

// `text` as one word of a POSIX shell.
std::string shell_quoted(const std::string& text);

}  // namespace cudiag
