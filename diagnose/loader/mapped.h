// The CUDA libraries that a process has mapped: which file, which version, and who wants it.
#pragma once

#include <string>
#include <vector>

#include "diagnose/facts.h"

namespace cudiag {

struct MappedLibrary {
    std::string path;
    std::string soname;
    std::string family;   // "cudart"
    std::string version;  // "" if the file does not tell
    std::string cuda;     // releases that ship this SONAME: "13.x"; "" if none is known
    std::string package;  // "nvidia-nccl-cu13 2.29.7 (pip)", "" if none owns it
    std::vector<std::string> needed_by;  // mapped files that have its SONAME in DT_NEEDED
    bool twice = false;                  // another file of the same library is mapped too
    std::string since;  // what became of the file: "replaced", "gone"; "" if it is what was mapped
};

// Of files that are mapped, in their order; a file under two names counts once.
std::vector<MappedLibrary> mapped_libraries(const std::vector<Module>& modules);

// The driver of a process: its libcuda.
struct MappedDriver {
    std::string path;     // "" if it has none
    std::string release;  // "550.54.14"; "" if the name of its file does not tell
    std::string cuda;     // the CUDA that it brings, "12.4"; "" if not known
};

struct ProcessLibraries {
    std::int32_t pid = 0;
    std::vector<std::string> argv;
    MappedDriver driver;
    std::vector<MappedLibrary> libraries;  // without the driver's libcuda
};

// Of each process with CUDA libraries mapped, by its last list of modules. Versions are those of
// the files as they are now.
std::vector<ProcessLibraries> libraries_of(const Facts& facts);

}  // namespace cudiag
