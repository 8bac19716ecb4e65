// A profile as TensorBoard's scalars.
#pragma once

#include <string>
#include <vector>

#include "diagnose/optimizer/profile.h"

namespace cudiag {

// The bytes of an event file: for each optimizer and recorded step the milliseconds on the host,
// busy and idle on the device, and the launches. Steps are numbered as the optimizer's.
std::string tensorboard_events(const std::vector<Profile>& profiles);

// The name that TensorBoard looks for, unique by time and host: "events.out.tfevents.…". `seconds`
// since 1970.
std::string tensorboard_file_name(std::int64_t seconds, const std::string& host);

}  // namespace cudiag
