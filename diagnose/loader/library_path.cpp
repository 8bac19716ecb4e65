#include "diagnose/loader/library_path.h"

#include <algorithm>
#include <filesystem>

namespace cudiag {

std::vector<std::string> library_path_entries(const std::string& value) {
    std::vector<std::string> entries;
    std::size_t at = 0;
    while (at < value.size()) {
        const auto end = std::min(value.find_first_of(":;", at), value.size());
        if (end > at) {
            entries.push_back(value.substr(at, end - at));
        }
        at = end + 1;
    }
    return entries;
}

std::string with_directory(const std::string& value, const std::string& directory) {
    return value.empty() ? directory : directory + ":" + value;
}

std::string without_directory(const std::string& value, const std::string& directory) {
    std::string kept;
    for (const std::string& entry : library_path_entries(value)) {
        if (!same_directory(entry, directory)) {
            kept += (kept.empty() ? "" : ":") + entry;
        }
    }
    return kept;
}

bool same_directory(const std::string& a, const std::string& b) {
    std::error_code error;
    return a == b || std::filesystem::equivalent(a, b, error);
}

}  // namespace cudiag
