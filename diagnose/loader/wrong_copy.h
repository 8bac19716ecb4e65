// What the rules about a wrongly chosen copy share.
#pragma once

#include <string>

#include "diagnose/loader/case.h"

namespace cudiag {

// "LD_LIBRARY_PATH", "DT_RUNPATH of …", or "already in the process, loaded for …, by …".
std::string why_chosen(const Source& source);

// Does the file define this symbol version?
bool defines_version(const std::string& path, const std::string& version);

// The SONAME that should give the missing symbol or version to `file`: the one that the symbol's
// version is tied to; else the one among the file's own NEEDED that the symbol's name belongs to,
// or of which some copy exports it. "" if none can be told.
std::string expected_soname(const LoaderCase& c, const std::string& file);

}  // namespace cudiag
