// knowledge/build_texts.json: what the text of an exception tells of a failed build.
#include <algorithm>

#include "diagnose/knowledge/data_object.h"
#include "diagnose/knowledge/toolchain_tables.h"

namespace cudiag {
namespace {

// A line of the message and the one after it: some texts are broken in two.
struct Window {
    std::string text;
    std::size_t first_line = 0;  // bytes of it
};

std::string_view line_at(std::string_view message, std::size_t offset) {
    std::string_view line = message.substr(offset, message.find('\n', offset) - offset);
    line = line.substr(0, kSearchedBytes);  // compilers' messages stand at the beginning of theirs
    if (!line.empty() && line.back() == '\r') {
        line.remove_suffix(1);
    }
    return line;
}

// The beginning of the next line; message.size() after the last one.
std::size_t next_line(std::string_view message, std::size_t offset) {
    const auto end = message.find('\n', offset);
    return end == std::string_view::npos ? message.size() : end + 1;
}

Window window_at(std::string_view message, std::size_t offset) {
    Window window{std::string{line_at(message, offset)}, 0};
    window.first_line = window.text.size();
    const std::size_t next = next_line(message, offset);
    if (next < message.size()) {
        window.text += '\n';
        window.text += line_at(message, next);
    }
    return window;
}

bool fits(const BuildTextPattern& pattern, std::string_view type,
          const std::vector<std::string>& functions) {
    const auto has = [](const std::vector<std::string>& all, std::string_view one) {
        return std::find(all.begin(), all.end(), one) != all.end();
    };
    return (pattern.types.empty() || has(pattern.types, type)) &&
           (pattern.function.empty() || has(functions, pattern.function));
}

std::optional<BuildText> found_in(const BuildTextTable& table, std::size_t which,
                                  const Window& window) {
    const BuildTextPattern& pattern = table.patterns[which];
    const std::string_view line = std::string_view{window.text}.substr(0, window.first_line);
    if (line.find(pattern.contains) == std::string_view::npos) {
        return std::nullopt;
    }
    std::smatch match;
    if (!std::regex_search(window.text, match, table.compiled[which]) ||
        static_cast<std::size_t>(match.position()) > window.first_line) {
        return std::nullopt;
    }
    BuildText found;
    found.pattern = &pattern;
    found.line = line;
    found.values = values_in(pattern, match);
    if (pattern.known_extension) {
        const auto package = table.package_of.find(found.values["module"]);
        if (package == table.package_of.end()) {
            return std::nullopt;
        }
        found.values["package"] = package->second;
    }
    return found;
}

BuildTextPattern pattern_of(DataObject& entry) {
    BuildTextPattern pattern;
    read_text_pattern(entry, pattern);
    pattern.slug = entry.text("slug");
    pattern.types = entry.texts("types");
    pattern.function = entry.optional_text("function");
    pattern.known_extension = entry.flag("known_extension");
    pattern.meaning = entry.text("meaning");
    entry.nothing_else();
    return pattern;
}

void add_extensions(BuildTextTable& table, DataObject& entry) {
    const std::string package = entry.text("package");
    const std::vector<std::string> modules = entry.texts("modules");
    static_cast<void>(entry.text("source"));
    entry.nothing_else();
    if (modules.empty()) {
        entry.fail("'modules' is empty");
    }
    for (const std::string& module : modules) {
        put_once(table.package_of, entry, module, package);
    }
}

// Its own example must be found by a pattern, or one of the two is wrong.
void check_example(const BuildTextTable& table, DataObject& file) {
    const BuildTextPattern& pattern = table.patterns.back();
    const std::string type = pattern.types.empty() ? "RuntimeError" : pattern.types.front();
    for (const BuildText& found :
         find_build_texts(table, type, pattern.example, {pattern.function})) {
        if (found.pattern == &pattern) {
            return;
        }
    }
    file.fail("'" + pattern.name + "' does not match its own example");
}

}  // namespace

std::vector<BuildText> find_build_texts(const BuildTextTable& table, std::string_view type,
                                        std::string_view message,
                                        const std::vector<std::string>& functions) {
    std::vector<BuildText> result;
    type.remove_prefix(type.rfind('.') + 1);  // npos + 1 is 0
    std::vector<std::size_t> candidates;
    for (std::size_t which = 0; which < table.patterns.size(); ++which) {
        if (fits(table.patterns[which], type, functions) &&
            message.find(table.patterns[which].contains) != std::string_view::npos) {
            candidates.push_back(which);
        }
    }
    if (candidates.empty()) {
        return result;
    }
    for (std::size_t offset = 0; offset < message.size(); offset = next_line(message, offset)) {
        const Window window = window_at(message, offset);
        for (const std::size_t which : candidates) {
            if (std::optional<BuildText> found = found_in(table, which, window)) {
                found->offset = offset;
                result.push_back(std::move(*found));
            }
        }
    }
    return result;
}

BuildTextTable parse_build_texts(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "build_texts.json", keep);
    BuildTextTable table;
    for (DataObject& entry : file.optional_objects("extensions")) {
        add_extensions(table, entry);
    }
    for (DataObject& entry : file.objects("texts")) {
        BuildTextPattern pattern = pattern_of(entry);
        must_be_new(table.patterns, pattern, entry);
        table.compiled.push_back(compiled(pattern, entry));
        table.patterns.push_back(std::move(pattern));
        check_example(table, file);
    }
    file.nothing_else();
    return table;
}

}  // namespace cudiag
