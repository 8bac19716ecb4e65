// Figures of a profile in words, for every presenter of profiles.
#pragma once

#include <cstdint>
#include <string>

#include "diagnose/optimizer/profile.h"

namespace cudiag {

// "6.66 ms", "12.3 µs", "840 ns": three digits that count.
std::string nanoseconds_text(double nanoseconds);

// A demangled kernel as a reader needs it: without its result, its parameters and the namespaces
// that say nothing; cut off after 100 characters.
std::string short_kernel(const std::string& name);

// The step of this optimizer (an index in Profile::steps) whose time on the device is nearest to
// the median of the steady ones; nothing if none was recorded.
std::optional<std::size_t> typical_step(const Profile& profile, std::size_t optimizer);

}  // namespace cudiag
