// A profile for a person at a terminal, and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "diagnose/optimizer/profile.h"
#include "present/terminal.h"

namespace cudiag {

// One block: each optimizer's time, where it goes, this card's limit, what was lost and what it
// cost.
std::string render_profile(const Profile& profile, const Style& style,
                           const std::string& run_directory);

// The same as an object: times in ms; steps, but not each of the GPU's operations.
nlohmann::ordered_json profile_json(const Profile& profile);

}  // namespace cudiag
