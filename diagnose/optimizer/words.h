// How a profile's quantities are written in findings.
#pragma once

#include <cstdint>
#include <string>

#include "diagnose/optimizer/rules.h"

namespace cudiag {

// "22.4 ms", "312 us", "1.3 s".
std::string time_text(double nanoseconds);

// In milliseconds, for evidence: rounded to a microsecond.
double milliseconds(double nanoseconds);

// "1.0e9", "12.6e6", "8192".
std::string count_text(std::uint64_t count);

// A finding about this process's profile.
Finding finding_of(const ProfileCase& c, const char* slug, Severity severity);

// Would an update on the GPU alone make the step shorter? The GPU is busy for most of the training
// step, and in the update it is not the host that it waits for.
bool device_decides(const Optimizer& optimizer);

// Debuggers, trace functions and tensors whose operations are dispatched in Python take host time
// that no choice of the implementation gives back; "" if there is none of these.
std::string host_burden(const Optimizer& optimizer);

}  // namespace cudiag
