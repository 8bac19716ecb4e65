#include "diagnose/knowledge/text_pattern.h"

namespace cudiag {

void read_text_pattern(DataObject& entry, TextPattern& pattern) {
    pattern.name = entry.text("name");
    pattern.contains = entry.text("contains");
    pattern.pattern = entry.text("pattern");
    pattern.groups = entry.texts("groups");
    pattern.values = entry.pairs("values");
    pattern.example = entry.text("example");
    pattern.source = entry.text("source");
}

std::regex compiled(const TextPattern& pattern, const DataObject& entry) {
    try {
        std::regex regex{pattern.pattern};
        if (regex.mark_count() != pattern.groups.size()) {
            entry.fail("'groups' does not name every group of 'pattern'");
        }
        return regex;
    } catch (const std::regex_error& error) {
        entry.fail(std::string{"'pattern': "} + error.what());
    }
}

TextValues values_in(const TextPattern& pattern, const std::smatch& match) {
    TextValues values;
    for (const auto& [key, value] : pattern.values) {
        values[key] = value;
    }
    for (std::size_t group = 0; group < pattern.groups.size(); ++group) {
        if (match.length(group + 1) > 0) {
            values[pattern.groups[group]] = match.str(group + 1);
        }
    }
    return values;
}

}  // namespace cudiag
