// knowledge/{headers,toolkits,build_texts}.json turned into tables. Apart from toolchain.h so that
// tests can feed in malformed data.
#pragma once

#include <map>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/knowledge/tables.h"
#include "diagnose/knowledge/toolchain.h"

namespace cudiag {

// Moved, never copied: groups and linkables point at owners.
struct HeaderTable {
    HeaderTable() = default;
    HeaderTable(HeaderTable&&) = default;
    HeaderTable& operator=(HeaderTable&&) = default;
    HeaderTable(const HeaderTable&) = delete;
    HeaderTable& operator=(const HeaderTable&) = delete;
    ~HeaderTable() = default;

    std::vector<HeaderOwner> owners;
    std::map<std::string, const HeaderOwner*, std::less<>> by_library;
    std::map<std::string, const HeaderOwner*, std::less<>> by_header;     // "cusparse.h"
    std::map<std::string, const HeaderOwner*, std::less<>> by_directory;  // "thrust/"
    std::map<std::string, Linkable, std::less<>> linkables;               // by name
    std::vector<HeaderGroup> groups;
    std::map<std::string, std::string, std::less<>> newest;  // "13" -> "13.0"
};

struct ToolkitTable {
    std::vector<ToolkitRelease> releases;  // the oldest first
    std::vector<BadPair> bad_pairs;
};

struct BuildTextTable {
    std::vector<BuildTextPattern> patterns;
    std::vector<std::regex> compiled;                            // of each pattern
    std::map<std::string, std::string, std::less<>> package_of;  // "amp_C" -> "apex"
};

// Each throws KnowledgeError as those of tables.h do.
HeaderTable parse_headers(std::string_view json);
ToolkitTable parse_toolkits(std::string_view json);
BuildTextTable parse_build_texts(std::string_view json);

// What header_owner() answers, from any table.
const HeaderOwner* find_header_owner(const HeaderTable& table, std::string_view header);

// What build_texts_of() answers, from any table.
std::vector<BuildText> find_build_texts(const BuildTextTable& table, std::string_view type,
                                        std::string_view message,
                                        const std::vector<std::string>& functions);

// Compares two releases by as many numbers as `bound` has: ("11.4.0", "11") -> 0.
int compare_releases(std::string_view release, std::string_view bound);

}  // namespace cudiag
