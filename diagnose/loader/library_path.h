// Values of LD_LIBRARY_PATH.
#pragma once

#include <string>
#include <vector>

namespace cudiag {

// Entries of a value, empty ones (the current directory, to ld.so) left out: a remedy should not
// depend on them.
std::vector<std::string> library_path_entries(const std::string& value);

// The value with `directory` in front, and without any spelling of it.
std::string with_directory(const std::string& value, const std::string& directory);
std::string without_directory(const std::string& value, const std::string& directory);

// Are both names of one directory?
bool same_directory(const std::string& a, const std::string& b);

}  // namespace cudiag
