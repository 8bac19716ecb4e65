// From what was recorded to where the time goes.
#pragma once

#include <string>
#include <vector>

#include "diagnose/optimizer/profile.h"
#include "diagnose/optimizer/recorded.h"

namespace cudiag {

// `card_directories`: where files of measured cards may lie (card.h). Reads these, and the build
// file beside the library of an optimizer that computes on the CPU; nothing else of the machine.
Profile analyse(const RecordedProfile& recorded, const std::vector<std::string>& card_directories);

}  // namespace cudiag
