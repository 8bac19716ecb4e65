// What is known of optimizers and of their kernels: data from knowledge/optimizer.json.
#pragma once

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/optimizer/profile.h"

namespace cudiag {

// Whose kernel it is, by its demangled name; nothing for one that any operation may launch.
std::optional<Implementation> implementation_of_kernel(std::string_view kernel);

struct OptimizerClass {
    std::string name;  // last part of the class's name
    // How often an update reads and writes an element of each, at least.
    std::uint64_t parameters = 0, gradients = 0, state = 0;
    bool fused = false;       // torch has a fused kernel for it on CUDA
    std::string fused_in;     // the first release that has
    bool like_adamw = false;  // and that takes as long as AdamW's
    std::string source;
};

// By the last part of a class's name; nullptr if it is not known.
const OptimizerClass* optimizer_class(std::string_view name);

struct OptimizerTable {
    struct Kernel {
        std::string pattern;
        std::regex compiled;
        Implementation implementation = Implementation::unknown;
    };

    std::vector<Kernel> kernels;
    std::vector<OptimizerClass> classes;
};

// Throws KnowledgeError as those of tables.h do.
OptimizerTable parse_optimizers(std::string_view json);

// As knowledge_problems(), of this file.
std::vector<std::string> optimizer_problems();

}  // namespace cudiag
