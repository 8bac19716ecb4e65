// In which words programs say that a GPU's memory did not suffice: data from
// knowledge/memory_texts.json.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/knowledge/text_pattern.h"

namespace cudiag {

// Figures that a message tells, in bytes, by the names of the file's groups: "asked", "total",
// "free", "in_use", "allocated", "reserved", "reserved_in_all", "other".
std::map<std::string, std::uint64_t, std::less<>> memory_told_by(std::string_view message);

// "2.00 GiB", "17,592,186", "0 bytes"; nothing for anything else.
std::optional<std::uint64_t> bytes_in(std::string_view text);

std::vector<const TextPattern*> all_memory_texts();

// Throws KnowledgeError, as those of tables.h do.
PatternTable parse_memory_texts(std::string_view json);

// As knowledge_problems(), of this file.
std::vector<std::string> memory_problems();

}  // namespace cudiag
