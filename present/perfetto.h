// A profile as a trace that ui.perfetto.dev and trace_processor read.
#pragma once

#include <string>
#include <vector>

#include "diagnose/optimizer/profile.h"

namespace cudiag {

// The bytes of the file. A track for the host's steps of each optimizer, one for each stream of
// each GPU, and a counter of the time that each step took on the device. Times are of the wall
// clock.
std::string perfetto_trace(const std::vector<Profile>& profiles);

}  // namespace cudiag
