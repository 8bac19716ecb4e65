#include "diagnose/loader/file_version.h"

#include <cctype>
#include <filesystem>
#include <regex>

#include "diagnose/elf/elf_file.h"
#include "diagnose/knowledge/knowledge.h"
#include "diagnose/packages/owner.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

// "2.27.3" of "NCCL version 2.27.3+cuda12.9": what follows the prefix, as far as it is a dotted
// number.
std::string leading_number(const std::string& text) {
    std::size_t end = 0;
    while (end < text.size() &&
           (std::isdigit(static_cast<unsigned char>(text[end])) != 0 || text[end] == '.')) {
        ++end;
    }
    return text.substr(0, end);
}

std::string by_string(const VersionHint& hint, const std::string& path) {
    if (hint.string_prefix.empty()) {
        return {};
    }
    const std::string text = find_string(path, hint.string_prefix);
    return text.size() <= hint.string_prefix.size()
               ? std::string{}
               : leading_number(text.substr(hint.string_prefix.size()));
}

std::string joined_groups(const std::smatch& match) {
    std::string version;
    for (std::size_t i = 1; i < match.size(); ++i) {
        if (match[i].matched) {
            version += (version.empty() ? "" : ".") + match[i].str();
        }
    }
    return version;
}

std::string by_symbols(const VersionHint& hint, const std::string& path) {
    if (hint.symbol_pattern.empty()) {
        return {};
    }
    const std::regex pattern{hint.symbol_pattern};
    std::string newest;
    for (const DynamicSymbol& symbol : dynamic_symbols(path)) {
        std::smatch match;
        if (symbol.defined && std::regex_match(symbol.name, match, pattern)) {
            const std::string version = joined_groups(match);
            if (newest.empty() || compare_versions(version, newest) > 0) {
                newest = version;
            }
        }
    }
    return newest;
}

// The suffix counts only if it says more than the SONAME does: libcudart.so.12 alone is no version.
std::string by_name(const std::string& path) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    const std::string name = (error ? fs::path{path} : real).filename().string();
    const auto so = name.find(".so.");
    if (so == std::string::npos) {
        return {};
    }
    const std::string suffix = name.substr(so + 4);
    return suffix.find('.') == std::string::npos ? std::string{} : leading_number(suffix);
}

}  // namespace

std::string file_version(const std::string& path) {
    const std::string family = library_family(fs::path{path}.filename().string());
    if (const VersionHint* hint = version_hint(family)) {
        if (std::string version = by_string(*hint, path); !version.empty()) {
            return version;
        }
        if (std::string version = by_symbols(*hint, path); !version.empty()) {
            return version;
        }
    }
    if (std::string version = by_name(path); !version.empty()) {
        return version;
    }
    const auto owner = owner_of(path);
    return owner ? owner->version : std::string{};
}

std::string version_in_symbol(const std::string& library, const std::string& symbol) {
    const VersionHint* hint = version_hint(library);
    if (hint == nullptr || hint->symbol_pattern.empty()) {
        return {};
    }
    std::smatch match;
    return std::regex_match(symbol, match, std::regex{hint->symbol_pattern}) ? joined_groups(match)
                                                                             : std::string{};
}

}  // namespace cudiag
