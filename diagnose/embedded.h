// The data files compiled into the command (cmake/embed.cmake).
#pragma once

#include <string_view>
#include <vector>

namespace cudiag {

// Bytes of knowledge/NAME, explain/NAME or present/NAME.css by its bare file name; empty if there
// is no such file. Valid for ever.
std::string_view embedded_file(std::string_view name);

// Bare names of all of them.
std::vector<std::string_view> embedded_files();

}  // namespace cudiag
