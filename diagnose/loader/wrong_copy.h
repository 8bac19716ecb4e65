// What the rules about a wrongly chosen copy share.
#pragma once

#include <string>

#include "diagnose/loader/case.h"

namespace cudiag {

// "LD_LIBRARY_PATH", "DT_RUNPATH of …", or "already in the process, loaded for …, by …".
std::string why_chosen(const Source& source);

// Does the file define this symbol version?
bool defines_version(const std::string& path, const std::string& version);

}  // namespace cudiag
