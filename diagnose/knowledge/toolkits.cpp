// knowledge/toolkits.json: releases of nvcc, and pairs that fail though no check refuses them.
#include <charconv>

#include "diagnose/knowledge/data_object.h"
#include "diagnose/knowledge/toolchain_tables.h"

namespace cudiag {
namespace {

// The numbers of "11.4.0-1": 11, 4, 0.
std::vector<int> numbers(std::string_view release) {
    std::vector<int> result;
    const char* at = release.data();
    const char* const end = at + release.size();
    for (int number = 0; at < end; ++at) {
        const auto [rest, error] = std::from_chars(at, end, number);
        if (error != std::errc{}) {
            break;
        }
        result.push_back(number);
        at = rest;
        if (at >= end || *at != '.') {
            break;
        }
    }
    return result;
}

// "6-15" into its two ends.
void read_range(DataObject& entry, const char* key, int& oldest, int& newest) {
    const std::string text = entry.text(key);
    const auto dash = text.find('-');
    const std::vector<int> low = numbers(text.substr(0, dash));
    const std::vector<int> high =
        dash == std::string::npos ? low : numbers(std::string_view{text}.substr(dash + 1));
    if (low.size() != 1 || high.size() != 1 || low[0] > high[0] || dash == std::string::npos) {
        entry.fail(std::string{"'"} + key + "' is no range of majors: " + text);
    }
    oldest = low[0];
    newest = high[0];
}

ToolkitRelease release_of(DataObject& entry) {
    ToolkitRelease result;
    result.release = entry.text("release");
    if (numbers(result.release).size() != 2) {
        entry.fail("'release' is no MAJOR.MINOR: " + result.release);
    }
    read_range(entry, "gcc", result.gcc_oldest, result.gcc_newest);
    read_range(entry, "clang", result.clang_oldest, result.clang_newest);
    result.architectures = entry.texts("architectures");
    for (const std::string& architecture : result.architectures) {
        if (architecture_name(architecture) != architecture) {
            entry.fail("'architectures' has '" + architecture + "'");
        }
    }
    result.standards = entry.texts("standards");
    if (result.architectures.empty() || result.standards.empty()) {
        entry.fail("'architectures' or 'standards' is empty");
    }
    result.newest_standard = result.standards.back();
    result.notes = entry.texts("notes");
    result.checked = entry.flag("checked");
    result.source = entry.text("source");
    entry.nothing_else();
    return result;
}

BadPair pair_of(DataObject& entry) {
    BadPair pair;
    pair.name = entry.text("name");
    pair.a = entry.text("a");
    pair.b = entry.text("b");
    pair.a_from = entry.optional_text("a_from");
    pair.a_to = entry.optional_text("a_to");
    pair.b_from = entry.optional_text("b_from");
    pair.b_to = entry.optional_text("b_to");
    if ((pair.a_from + pair.a_to).empty() || (pair.b_from + pair.b_to).empty()) {
        entry.fail("no release is bad with every other");
    }
    for (const std::string& bound : {pair.a_from, pair.a_to, pair.b_from, pair.b_to}) {
        if (!bound.empty() && numbers(bound).empty()) {
            entry.fail("no release: '" + bound + "'");
        }
    }
    pair.header = entry.optional_text("header");
    pair.symptoms = entry.texts("symptoms");
    pair.why = entry.text("why");
    pair.remedies = entry.texts("remedies");
    if (pair.remedies.empty()) {
        entry.fail("'remedies' is empty");
    }
    pair.source = entry.text("source");
    entry.nothing_else();
    return pair;
}

}  // namespace

int compare_releases(std::string_view release, std::string_view bound) {
    std::vector<int> ours = numbers(release);
    const std::vector<int> theirs = numbers(bound);
    ours.resize(theirs.size(), 0);
    return ours < theirs ? -1 : ours > theirs ? 1 : 0;
}

ToolkitTable parse_toolkits(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "toolkits.json", keep);
    ToolkitTable table;
    for (DataObject& entry : file.objects("releases")) {
        ToolkitRelease release = release_of(entry);
        if (!table.releases.empty() &&
            compare_releases(table.releases.back().release, release.release) >= 0) {
            entry.fail(release.release + " occurs twice or is out of order");
        }
        table.releases.push_back(std::move(release));
    }
    for (DataObject& entry : file.optional_objects("bad_pairs")) {
        BadPair pair = pair_of(entry);
        for (const BadPair& other : table.bad_pairs) {
            if (other.name == pair.name) {
                entry.fail("'" + pair.name + "' occurs twice");
            }
        }
        table.bad_pairs.push_back(std::move(pair));
    }
    file.nothing_else();
    return table;
}

}  // namespace cudiag
