// What the outside world is known to ship: data from knowledge/*.json, compiled in. Each entry
// names its source. docs/knowledge.md tells how the data is written, checked and extended.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cudiag {

// A package that brings a library of one SONAME.
struct Provider {
    std::string manager;  // "pip", "conda", "apt", "image", "host" (the machine, not a container)
    std::string package;  // "nvidia-cusparse-cu12", "libcusparse-12-9",
                          // "nvidia/cuda:12.9.1-runtime-ubuntu22.04"
    std::string
        spec;  // what follows the package: "==12.*", "=2", " cuda-version=12.9", "" for nothing
    std::string note;       // "" or a caveat
    std::string directory;  // pip: where the wheel puts it, "nvidia/cu13/lib"; "" otherwise
    std::string channel;    // conda: the channel to name with -c; "" otherwise
    std::string
        pattern;  // package with {major} and {minor} for one CUDA release; "" if it has none
    std::string spec_pattern;  // the same for spec
    int cuda_major = 0;        // CUDA major this provider belongs to; 0 when independent
    bool checked = false;      // the package itself was opened, not only its documentation
};

// One SONAME of one library: libcusparse.so.12. Some SONAMEs are shipped by two CUDA majors.
struct LibraryRelease {
    std::string soname;
    std::string library;           // family: "cusparse"
    std::string cuda;              // releases that ship it: "12.x", "12.x, 13.x", "" if independent
    int cuda_major = 0;            // 11, 12, 13; 0 when independent or shipped by several majors
    std::vector<int> cuda_majors;  // every major that ships it
    std::string description;       // "cuSPARSE, sparse linear algebra"
    std::vector<std::string> pip_directories;  // of every major: "nvidia/cusparse/lib", …
    std::vector<Provider> providers;
    std::vector<std::string> notes;
    bool driver = false;  // belongs to the driver: no package of a container may bring it
    std::string source;
};

// By exact SONAME ("libcudart.so.12", "libcudart.so.11.0"). A name that is not known is not guessed
// at. Pointers stay valid for ever. Thread-safe.
const LibraryRelease* library_release(std::string_view soname);

// All releases of the same family as `soname`: libcudart.so.11.0, .12, .13. Empty for an unknown
// name.
std::vector<const LibraryRelease*> relatives(std::string_view soname);

// "cudart" for "libcudart.so.12.4.127", "" when it is no library we know. By the name up to ".so".
std::string library_family(std::string_view file_name);

// Providers of a release that fit a CUDA major, those that are independent of CUDA included; all of
// them for 0.
std::vector<Provider> providers_for(const LibraryRelease& release, int cuda_major);

// The provider for one CUDA release ("12.4"): package and spec filled in from the patterns where it
// has them, else as it is.
Provider for_cuda(const Provider& provider, std::string_view cuda);

// The command that installs it, for a shell: "pip install 'nvidia-cusparse-cu12==12.*'". pip is
// called through `python -m pip` when `python` is not empty. "" for managers that nothing installs
// from (image, host).
std::string install_command(const Provider& provider, std::string_view python = {});

// How to read a file's own version (data: knowledge/versions.json): by the real file's name suffix,
// by a string in it
// ("NCCL version 2.27.3+cuda12.9"), by the newest versioned export (__nvJitLinkCreate_12_4
// -> 12.4).
struct VersionHint {
    std::string library;         // family
    std::string string_prefix;   // "" if unused
    std::string symbol_pattern;  // ECMAScript regex with groups for the numbers; "" if unused
    std::string example;         // what the file of `source` gives by it
    std::string source;
};

const VersionHint* version_hint(std::string_view library);

// One exact requirement of a wheel: "nvidia-nccl-cu12" "2.27.5".
struct Pin {
    std::string package;
    std::string version;
};

// A release of torch: which CUDA its PyPI wheel was built for, and which NVIDIA wheels it pins.
struct TorchRelease {
    std::string version;                  // "2.13"
    std::string cuda;                     // "13.0"
    std::string torchvision, torchaudio;  // those of its newest patch release; "" if not known
    std::vector<Pin> torchvisions, torchaudios;  // by patch release: {"2.9.0", "0.24.0"}
    std::vector<Pin> pins;                       // of the newest patch release of that version
    std::string source;
};

const TorchRelease* torch_release(std::string_view version);  // "2.13.0+cu130" -> 2.13
std::vector<const TorchRelease*> all_torch_releases();

// The torchvision or torchaudio that was built for exactly this torch: ("torchvision",
// "2.9.1+cu128") -> "0.24.1". Of a patch release that is not known, that of the newest known one.
// "" when there is none.
std::string companion_release(std::string_view package, std::string_view torch_version);

// First release of a library that exports a symbol: ("nccl", "ncclCommResume") -> "2.29.7" or
// nothing.
std::optional<std::string> first_release_with(std::string_view library, std::string_view symbol);

// GLIBCXX_/CXXABI_/GLIBC_/GCC_ version -> the release that brought it: "GLIBCXX_3.4.30" ->
// "GCC 12.1", "GLIBC_2.34" -> "glibc 2.34". "" for a version that is not known.
std::string brought_by(std::string_view symbol_version);

// Every SONAME known, for tests and `cudiag explain`.
std::vector<const LibraryRelease*> all_library_releases();

// What was wrong with the data files as compiled in; empty in every build that passed its tests. A
// file that is wrong counts as empty: bad data must not become a wrong finding or a crash of the
// command.
std::vector<std::string> knowledge_problems();

}  // namespace cudiag
