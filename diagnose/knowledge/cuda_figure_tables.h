// knowledge/cuda_figures.json turned into a table. Apart from cuda_figures.h so that tests can feed
// in malformed data.
#pragma once

#include <regex>
#include <string_view>
#include <vector>

#include "diagnose/knowledge/cuda_figures.h"

namespace cudiag {

struct FigureTable {
    std::vector<TextPattern> patterns;
    std::vector<std::regex> compiled;  // of each pattern
};

// Throws KnowledgeError as those of tables.h do; also where a pattern names a key that nobody
// reads.
FigureTable parse_cuda_figures(std::string_view json);

}  // namespace cudiag
