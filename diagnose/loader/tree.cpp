#include "diagnose/loader/tree.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace cudiag {
namespace {

using FileId = std::pair<std::uint64_t, std::uint64_t>;

std::string directory_part(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash);
}

FileId file_id(const std::string& path) {
    struct stat status = {};
    return stat(path.c_str(), &status) == 0 ? FileId{status.st_dev, status.st_ino} : FileId{};
}

class TreeBuilder {
  public:
    TreeBuilder(const LoadState& state, const Resolution& resolution)
        : search_state_{state}, resolution_{resolution} {
        for (const Lookup& lookup : resolution.lookups) {
            if (&lookup != &resolution.lookups.front() &&
                !(lookup.ignorable && lookup.found.empty())) {
                needs_[lookup.requested_by].push_back(&lookup);
            }
        }
        for (const Lookup& lookup : resolution.lookups) {
            if (!lookup.already_loaded) {
                mapped_here_.insert(lookup.found);
            }
        }
        if (search_state_.executable.empty() && !state.modules.empty()) {
            search_state_.executable = state.modules.front().path;
        }
        search_state_.modules.clear();  // what is mapped does not matter to where copies lie
        for (const VersionClash& clash : resolution.clashes) {
            clashes_[clash.needed_by].push_back(clash);
        }
    }

    TreeNode root() {
        TreeNode node = bare(resolution_.lookups.front());
        expand(node);
        return node;
    }

  private:
    static TreeNode bare(const Lookup& lookup) {
        TreeNode node;
        node.name = lookup.name;
        node.path = lookup.found;
        node.error = lookup.found.empty() ? lookup.error : "";
        node.already_loaded = lookup.already_loaded;
        node.steps = lookup.steps;
        return node;
    }

    // A lookup that mapped its file is the place for that file's own needs; others only point
    // there.
    void expand(TreeNode& node) {
        node.clashes = clashes_[node.path];
        for (const Lookup* lookup : needs_[node.path]) {
            TreeNode child = bare(*lookup);
            child.elsewhere = child.already_loaded && mapped_here_.count(child.path) != 0;
            if (!child.missing() && !child.already_loaded) {
                child.shadowed = shadowed_by(*lookup);
            }
            node.children.push_back(std::move(child));
        }
        for (TreeNode& child : node.children) {
            if (!child.missing() && !child.already_loaded) {
                expand(child);
            }
        }
    }

    std::vector<ShadowedCopy> shadowed_by(const Lookup& lookup) const {
        std::vector<ShadowedCopy> copies;
        if (lookup.name.find('/') != std::string::npos) {
            return copies;
        }
        const std::vector<std::string> loaders(lookup.chain.rbegin(), lookup.chain.rend());
        const std::string own = directory_part(lookup.requested_by);
        std::set<FileId> seen{file_id(lookup.found), FileId{}};
        const auto add = [&](const std::string& path, const std::string& where) {
            if (seen.insert(file_id(path)).second) {
                copies.push_back({path, where, directory_part(path) == own});
            }
        };
        for (const SearchStep& step : every_copy(search_state_, lookup.name, loaders).steps) {
            if (step.matched) {
                add(step.tried.back(), why(step));
            }
        }
        add(own + "/" + lookup.name, "beside " + lookup.requested_by);
        return copies;
    }

    LoadState search_state_;
    const Resolution& resolution_;
    std::set<std::string> mapped_here_;
    std::map<std::string, std::vector<const Lookup*>> needs_;
    std::map<std::string, std::vector<VersionClash>> clashes_;
};

void collect(const TreeNode& node, std::vector<const TreeNode*>& missing,
             std::vector<const VersionClash*>& clashes) {
    if (node.missing()) {
        missing.push_back(&node);
    }
    for (const VersionClash& clash : node.clashes) {
        if (!clash.weak && !clash.provider_has_no_versions) {
            clashes.push_back(&clash);
        }
    }
    for (const TreeNode& child : node.children) {
        collect(child, missing, clashes);
    }
}

}  // namespace

const SearchStep* TreeNode::matched() const {
    const auto step =
        std::find_if(steps.begin(), steps.end(), [](const SearchStep& one) { return one.matched; });
    return step != steps.end() ? &*step : nullptr;
}

TreeNode needed_tree(const LoadState& state, const std::string& file) {
    const ElfRead read = read_elf(file);
    const bool program = read.file && read.file->executable();
    const Resolution resolution =
        program ? resolve_program(state, file, {}) : resolve_dlopen(state, file, "");
    return TreeBuilder(state, resolution).root();
}

std::vector<const TreeNode*> missing_in(const TreeNode& root) {
    std::vector<const TreeNode*> missing;
    std::vector<const VersionClash*> clashes;
    collect(root, missing, clashes);
    return missing;
}

std::vector<const VersionClash*> fatal_clashes_in(const TreeNode& root) {
    std::vector<const TreeNode*> missing;
    std::vector<const VersionClash*> clashes;
    collect(root, missing, clashes);
    return clashes;
}

}  // namespace cudiag
