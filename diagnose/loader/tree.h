// What a file needs, and what that needs in turn, as ld.so would map it: for `cudiag libs FILE`.
#pragma once

#include <string>
#include <vector>

#include "diagnose/loader/search.h"

namespace cudiag {

// Another copy of a library, which the search did not take.
struct ShadowedCopy {
    std::string path;
    std::string where;  // "DT_RUNPATH of /…/_C.so", "beside /…/_C.so"
    bool own =
        false;  // lies in the directory of the file that needs it: probably the one that was meant
};

struct TreeNode {
    std::string name;  // as in DT_NEEDED; the root's as asked
    std::string path;  // "" when it is missing
    std::string
        error;  // why it is missing: "cannot open shared object file: No such file or directory"
    bool already_loaded = false;        // found among what was mapped before this request
    bool elsewhere = false;             // its own needs stand where it appears first
    std::vector<SearchStep> steps;      // the search; the last one matched unless it is missing
    std::vector<VersionClash> clashes;  // versions that this file wants and its providers lack
    std::vector<ShadowedCopy> shadowed;
    std::vector<TreeNode> children;  // in DT_NEEDED's order

    bool missing() const { return path.empty(); }

    const SearchStep* matched() const;  // nullptr when missing
};

// The tree of `file`: a program is resolved as at its start, a library as by dlopen(file) in the
// state (whose modules, if any, count as loaded). A file that cannot be read gives a root with an
// error. Each file's needs are listed once, where the loader came by it first.
TreeNode needed_tree(const LoadState& state, const std::string& file);

// All nodes that are missing, and all clashes that end a load, depth first.
std::vector<const TreeNode*> missing_in(const TreeNode& root);
std::vector<const VersionClash*> fatal_clashes_in(const TreeNode& root);

}  // namespace cudiag
