// What a Python environment and its machine show from outside, before anything runs in them. Rules
// of the doctor take these and give checks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/build/host_compiler.h"
#include "diagnose/build/toolkit.h"
#include "diagnose/cuda/case.h"
#include "diagnose/facts.h"
#include "diagnose/machine.h"
#include "diagnose/memory_group.h"

namespace cudiag {

using Variables = std::map<std::string, std::string>;

struct PythonEnvironment {
    std::string path;               // as it is to be called; a venv's own link is kept
    std::string chosen_by;          // "--python", "VIRTUAL_ENV", "CONDA_PREFIX", "PATH"
    std::string problem;            // why it did not answer; "" if it did
    std::string version;            // "3.11.7"
    std::string prefix;             // of the venv, where it is one
    std::string executable;         // links resolved
    std::string include_directory;  // of Python.h
    std::vector<std::string> extension_suffixes;  // ".cpython-311-x86_64-linux-gnu.so", ".so"
    std::vector<std::string> packages;  // directories in which it looks for packages, in its order

    bool answered() const { return !path.empty() && problem.empty(); }
};

// A torch as its files tell it.
struct TorchInstall {
    std::string directory;                     // ".../site-packages/torch"; "" if there is none
    std::string version;                       // "2.13.0+cu130"
    std::string cuda;                          // "13.0"; "" for one that is built without
    std::string hip;                           // of one for AMD
    std::string extension;                     // its _C that this Python imports; "" if none fits
    std::string extension_of_another_python;   // a _C that does not fit; "" otherwise
    std::vector<std::string> preloads;         // what it loads before its own libraries
    std::vector<std::string> missing_modules;  // that `import torch` imports: "typing_extensions"
    std::vector<std::string> missing_for_builds;  // that its cpp_extension imports: "setuptools"
    // Of its cpp_extension.py:
    std::string standard;                    // "c++20", with which extensions are compiled
    std::vector<std::string> architectures;  // that it takes: "9.0"; empty if not known
    Variables named_architectures;           // "Hopper" -> "9.0+PTX"
    // The first gcc that its setup.py builds refuse, by the release of nvcc: {"12.4", 14}.
    std::map<std::string, int> gcc_refused_from;
    bool knows_native = false;     // takes "native" for the GPUs that it sees
    bool wraps_compilers = false;  // puts ccache before them where there is one

    bool found() const { return !directory.empty(); }
};

// What CUDA_HOME is to torch, and why.
struct CudaHome {
    std::string home;  // "" if there is none
    std::string rule;  // "CUDA_HOME", "CUDA_PATH", "nvcc in PATH", "/usr/local/cuda"; "" for none
};

// A program that was looked up as the build would, and asked something harmless.
struct AskedTool {
    std::string asked;  // "c++", "/opt/cuda/bin/nvcc"
    std::string path;   // "" if it is nowhere
    bool runs = false;
    std::string said;  // its complaint, one line
};

// A compiler for host code, with the directories in which it looks for headers, given the flags of
// the build.
struct HostPass {
    AskedTool tool;
    HostCompiler compiler;
    std::vector<std::string> flags;  // include options, as a build of torch's gives them
    std::vector<std::string> include_directories;
};

// A header that a build includes, and the file in which the #include stands.
struct WantedHeader {
    std::string header;
    std::string included_by;  // "" for the compiler's own command line
    bool by_nvcc = false;     // in a .cu; otherwise in a .cpp
    std::string found;        // "" if it is in none of the directories
};

struct BuildTools {
    CudaHome home;
    Toolkit toolkit;
    AskedTool nvcc;  // asked for the steps of a compile, which it only lists
    std::vector<std::string> missing_tools;  // of nvcc's own that it would call: "cicc"
    HostPass nvcc_host;                      // the compiler that nvcc calls
    HostPass cxx;                            // the one that torch calls
    AskedTool ninja;
    std::vector<WantedHeader> headers;
    std::vector<std::string> link_directories;
    std::string cudart;              // what -lcudart finds; "" if nothing
    std::string cudart_soname;       // "libcudart.so.13"; "" for an archive
    AskedTool wrapper;               // ccache, if torch would put it before the compilers
    std::string extensions_root;     // where torch keeps what it builds
    std::string unwritable;          // the directory that keeps it from being made; "" if none
    std::vector<std::string> locks;  // that lie there
};

// What ld.so maps for a file, and what it misses; no constructor has run.
struct LoadTrial {
    bool ran = false;
    std::string why_not;  // if it could not be tried
    std::vector<Module> modules;
    std::string error;         // as dlerror() would say it; "" if all is found
    std::size_t problems = 0;  // libraries, versions and symbols that are missing

    bool works() const { return ran && error.empty(); }
};

// A shared library that two of NVIDIA's wheels have both written: the one installed last won.
struct SharedPath {
    std::string path;
    std::string packages;  // "nvidia-nccl-cu12 2.18.3 and nvidia-nccl-cu13 2.29.7"
    std::string wanted;  // of the two, the one for torch's CUDA: "nvidia-nccl-cu13==2.29.7"; "" if
                         // none is told
};

// A compiled module of a package, or of torch's cache of builds, that is linked with torch.
struct Extension {
    std::string path;
    std::string package;  // "torchvision 0.24.1"; "" for one of the cache
    bool cached = false;
    bool built_by_this_torch = false;  // cached: its build.ninja names this torch's headers
    LoadTrial trial;
};

struct LaunchFacts {
    DriverLibrary driver;
    std::string driver_release;  // of the library's file
    std::string module_release;  // of the kernel module
    std::string runtime;         // path of the libcudart that torch maps
    bool stub = false;
    LoadTrial trial;  // of the library: what a host injects may need a newer glibc
};

struct DoctorFacts {
    Variables environment;
    PythonEnvironment python;
    TorchInstall torch;
    std::string deepspeed;                        // its version; "" without
    std::vector<std::string> pythons_with_torch;  // others on this machine, where this one has none
    BuildTools tools;
    LoadTrial import_trial;
    std::vector<Extension> extensions;
    std::vector<SharedPath> shared_paths;
    LaunchFacts launch;
    Machine machine;
    std::optional<MemoryGroup> memory;
    std::uint64_t memory_available = 0;  // of the machine, bytes; 0: not known
    std::uint64_t address_space = 0;     // RLIMIT_AS; 0: no limit
    unsigned processors = 1;
    Facts run;  // a run of this Python that has not been: for the rules that explain real ones

    std::string variable(const std::string& name) const {
        const auto found = environment.find(name);
        return found == environment.end() ? std::string{} : found->second;
    }

    bool is_set(const std::string& name) const { return environment.count(name) != 0; }

    const Process& process() const { return run.processes.front(); }
};

// Looks at everything. `asked` is the Python to look at, a path or a name of PATH; "" for the one
// that the environment leads to. Imports nothing and compiles nothing; starts Python once (without
// site), ld.so and the compilers with options that only print. Takes some 0.3 s.
DoctorFacts observe_environment(const std::string& asked, const Variables& environment);

}  // namespace cudiag
