// Version of a library as its file tells it.
#pragma once

#include <string>

namespace cudiag {

// By a string inside it, its newest versioned export, or the suffix of its real name, in that order
// (data: knowledge/versions.json); then by the package that owns it. "" if nothing tells.
std::string file_version(const std::string& path);

// "12.4" for `__nvJitLinkCreate_12_4`: the release that a versioned export of this library names;
// "" if it names none.
std::string version_in_symbol(const std::string& library, const std::string& symbol);

}  // namespace cudiag
