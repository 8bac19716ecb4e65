#include "diagnose/knowledge/memory_texts.h"

#include <charconv>

#include "diagnose/knowledge/data_object.h"
#include "diagnose/knowledge/loaded.h"

namespace cudiag {
namespace {

const Loaded<PatternTable>& texts() {
    static const auto loaded = load_table("memory_texts.json", parse_memory_texts);
    return loaded;
}

}  // namespace

PatternTable parse_memory_texts(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "memory_texts.json", keep);
    PatternTable table = read_pattern_table(file);
    file.nothing_else();
    return table;
}

std::optional<std::uint64_t> bytes_in(std::string_view text) {
    std::string digits;
    std::size_t at = 0;
    for (; at < text.size() && (std::isdigit(static_cast<unsigned char>(text[at])) != 0 ||
                                text[at] == '.' || text[at] == ',');
         ++at) {
        if (text[at] != ',') {
            digits += text[at];
        }
    }
    double number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size()) {
        return std::nullopt;
    }
    constexpr std::string_view kUnits[] = {"", " bytes", " KiB", " MiB", " GiB", " TiB"};
    constexpr double kFactors[] = {1, 1, 0x1p10, 0x1p20, 0x1p30, 0x1p40};
    for (std::size_t i = 0; i < std::size(kUnits); ++i) {
        if (text.substr(at) == kUnits[i]) {
            return static_cast<std::uint64_t>(number * kFactors[i]);
        }
    }
    return std::nullopt;
}

std::map<std::string, std::uint64_t, std::less<>> memory_told_by(std::string_view message) {
    std::map<std::string, std::uint64_t, std::less<>> told;
    for (const FoundText& text : find_texts(texts().table, message)) {
        for (const auto& [name, value] : text.values) {
            if (const auto bytes = bytes_in(value)) {
                told.emplace(name, *bytes);
            }
        }
    }
    return told;
}

std::vector<const TextPattern*> all_memory_texts() {
    std::vector<const TextPattern*> all;
    for (const TextPattern& pattern : texts().table.patterns) {
        all.push_back(&pattern);
    }
    return all;
}

std::vector<std::string> memory_problems() {
    return texts().problem.empty() ? std::vector<std::string>{}
                                   : std::vector<std::string>{texts().problem};
}

}  // namespace cudiag
