// A profile as one HTML file: no script, nothing loaded from elsewhere, light or dark as the
// reader's system is, readable on a phone; every chart has its figures in words.
#pragma once

#include <string>
#include <vector>

#include "diagnose/optimizer/profile.h"
#include "present/language.h"

namespace cudiag {

// `run`: its name, for the title.
std::string profile_html(const std::vector<Profile>& profiles, const std::string& run,
                         Language language = cudiag::language());

}  // namespace cudiag
