// Which library a symbol belongs to, by its name (data: knowledge/symbol_owners.json).
#pragma once

#include <string>
#include <vector>

namespace cudiag {

struct SymbolOwner {
    std::string family;                  // "torch", "nccl"
    std::vector<std::string> libraries;  // SONAMEs that may export it
};

// By the demangled name; nullptr for a symbol that no entry knows. Valid for ever.
const SymbolOwner* symbol_owner(const std::string& demangled);

}  // namespace cudiag
