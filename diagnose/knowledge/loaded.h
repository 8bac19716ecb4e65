// One data file, parsed at its first use. A bad one is empty: see knowledge_problems().
#pragma once

#include <string>
#include <string_view>

#include "diagnose/embedded.h"
#include "diagnose/knowledge/tables.h"

namespace cudiag {

template <typename Table>
struct Loaded {
    Table table;
    std::string problem;
};

template <typename Table>
Loaded<Table> load_table(const char* file, Table (*parse)(std::string_view)) {
    try {
        return {parse(embedded_file(file)), {}};
    } catch (const KnowledgeError& error) {
        return {{}, error.what()};
    }
}

}  // namespace cudiag
