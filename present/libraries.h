// What a file needs, or a process has mapped, for a person and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "diagnose/loader/tree.h"
#include "present/terminal.h"

namespace cudiag {

// A library of CUDA (or one that two copies are mapped of) in a running process.
struct MappedLibrary {
    std::string path;
    std::string soname;
    std::string version;
    std::string package;                 // "nvidia-nccl-cu13 2.29.7 (pip)", "" if none owns it
    std::vector<std::string> needed_by;  // mapped files that have its SONAME in DT_NEEDED
    bool twice = false;                  // another file of the same library is mapped too
};

// The tree as lines: name, where it was found and by which rule, its version; what is missing with
// every place searched; other copies that the search passed by; symbol versions that clash.
std::string render_tree(const TreeNode& root, const Style& style);
nlohmann::ordered_json tree_json(const TreeNode& node);

std::string render_mapped(const std::vector<MappedLibrary>& libraries, const Style& style);
nlohmann::ordered_json mapped_json(const std::vector<MappedLibrary>& libraries);

}  // namespace cudiag
