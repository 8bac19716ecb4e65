// Paths and command lines in pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cudiag {

// Pieces between separators, empty ones left out.
std::vector<std::string> split(std::string_view text, char separator);

// The words of a command line as sh(1) takes them: quotes and backslashes are resolved, nothing is
// expanded. An open quote reaches to the end.
std::vector<std::string> shell_words(std::string_view text);

// "/a/b/c" -> "/a/b"; "c" -> "".
std::string directory_of(const std::string& path);

// "/a/b/c" -> "c".
std::string base_name(const std::string& path);

// `path` as seen from `directory`, without "." and ".." where they lead nowhere else.
std::string absolute_path(const std::string& path, const std::string& directory);

// Values of an option in its two spellings: "-I/x" and "-I", "/x"; for options of gcc and ld, which
// have no "=". In order.
std::vector<std::string> values_of(const std::vector<std::string>& argv, std::string_view option);

// The first argument that ends with one of these: a source file.
std::optional<std::string> argument_ending(const std::vector<std::string>& argv,
                                           const std::vector<std::string_view>& endings);

// A command line for people, cut where it is long.
std::string command_text(const std::vector<std::string>& argv, std::size_t most = 120);

}  // namespace cudiag
