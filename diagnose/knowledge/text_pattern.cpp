#include "diagnose/knowledge/text_pattern.h"

#include <algorithm>

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

std::vector<FoundText> find_texts(const PatternTable& table, std::string_view message) {
    std::vector<std::pair<std::size_t, FoundText>> found;
    for (std::size_t which = 0; which < table.patterns.size(); ++which) {
        const TextPattern& pattern = table.patterns[which];
        const std::size_t at = message.find(pattern.contains);
        if (at == std::string_view::npos) {
            continue;
        }
        // A message may be a whole log: from the beginning of that line on, or of half a window.
        const std::size_t before = message.rfind('\n', at);
        const std::size_t begin =
            std::max(before == std::string_view::npos ? 0 : before + 1,
                     at > kSearchedBytes / 2 ? at - kSearchedBytes / 2 : std::size_t{0});
        const std::string window{message.substr(begin, kSearchedBytes)};
        std::smatch match;
        if (!std::regex_search(window, match, table.compiled[which])) {
            continue;
        }
        found.emplace_back(begin + static_cast<std::size_t>(match.position()),
                           FoundText{.pattern = &pattern,
                                     .values = values_in(pattern, match),
                                     .line = window.substr(0, window.find('\n'))});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<FoundText> result;
    result.reserve(found.size());
    for (auto& [offset, text] : found) {
        result.push_back(std::move(text));
    }
    return result;
}

PatternTable read_pattern_table(DataObject& file) {
    PatternTable table;
    for (DataObject& entry : file.objects("texts")) {
        TextPattern pattern;
        read_text_pattern(entry, pattern);
        entry.nothing_else();
        must_be_new(table.patterns, pattern, entry);
        PatternTable alone;
        alone.patterns.push_back(pattern);
        alone.compiled.push_back(compiled(pattern, entry));
        if (find_texts(alone, pattern.example).empty()) {
            entry.fail("'" + pattern.name + "' does not match its own example");
        }
        table.compiled.push_back(std::move(alone.compiled.front()));
        table.patterns.push_back(std::move(pattern));
    }
    return table;
}

}  // namespace cudiag
