// The figures that texts about a GPU tell, of memory above all: data from
// knowledge/cuda_figures.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/knowledge/text_pattern.h"

namespace cudiag {

// What each match of each pattern tells, by key, as it stands there: {"asked": "1.24 GiB"}.
std::vector<TextValues> figures_of(std::string_view message);
std::vector<const TextPattern*> all_figure_patterns();

// "1.24 GiB", "8.00GiB", "1,600,000,000 bytes"; nothing for any other text.
std::optional<std::uint64_t> bytes_in(std::string_view amount);

// As knowledge_problems(), of this file.
std::vector<std::string> cuda_figure_problems();

}  // namespace cudiag
