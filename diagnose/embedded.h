// The data files compiled into the command (cmake/embed.cmake).
#pragma once

#include <string_view>
#include <vector>

namespace cudiag {

// Bytes of knowledge/NAME, explain/NAME or present/NAME.css; empty if there is no such file. What
// is in another language is named with its folder: "zh/build-slow.md". Valid for ever.
std::string_view embedded_file(std::string_view name);

// Names of all of them.
std::vector<std::string_view> embedded_files();

}  // namespace cudiag
