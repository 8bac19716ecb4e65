// Texts of programs that tell of a failure, as data: what the tables of such texts share.
#pragma once

#include <map>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/knowledge/data_object.h"

namespace cudiag {

struct TextPattern {
    std::string name;                 // unique in its file: "torch-no-cuda-home"
    std::string contains;             // literal text that must be there
    std::string pattern;              // ECMAScript regex
    std::vector<std::string> groups;  // keys of its groups, in order: "program"
    std::vector<std::pair<std::string, std::string>> values;  // known without a group
    std::string example;                                      // a message that it matches
    std::string source;
};

using TextValues = std::map<std::string, std::string, std::less<>>;

// libstdc++'s regular expressions recurse with the length of the text: one of some 100 KB ends the
// process. Nothing longer is searched.
inline constexpr std::size_t kSearchedBytes = 2048;

// Fills in these fields, and leaves the others of the entry to the caller. Throws KnowledgeError.
void read_text_pattern(DataObject& entry, TextPattern& pattern);

// Throws KnowledgeError where the regex is none, or its groups are not those that are named.
std::regex compiled(const TextPattern& pattern, const DataObject& entry);

// By key: what is known without a group, and the groups that took part.
TextValues values_in(const TextPattern& pattern, const std::smatch& match);

// One pattern that was found in a message.
struct FoundText {
    const TextPattern* pattern = nullptr;
    TextValues values;
    std::string line;  // where it stands
};

// A file's patterns, each with its regex.
struct PatternTable {
    std::vector<TextPattern> patterns;
    std::vector<std::regex> compiled;
};

// Every pattern that the message holds, once each, in the order of the message; two at one place in
// the order of the table.
std::vector<FoundText> find_texts(const PatternTable& table, std::string_view message);

// Throws KnowledgeError where another pattern has the name.
template <class Pattern>
void must_be_new(const std::vector<Pattern>& known, const TextPattern& pattern,
                 const DataObject& entry) {
    for (const TextPattern& other : known) {
        if (other.name == pattern.name) {
            entry.fail("'" + pattern.name + "' occurs twice");
        }
    }
}

// The list `texts` of a data file. Throws KnowledgeError, also where a pattern does not find its
// own example.
PatternTable read_pattern_table(DataObject& file);

}  // namespace cudiag
