// A profile as it was recorded (PID.prof), without bytes: what CUPTI told of the GPU, the
// optimizers and their steps. analyse.h makes sense of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "record/reader.h"

namespace cudiag {

// The lines that step_hooks.py wrote of an optimizer: "key\tvalue\tvalue…", a key perhaps several
// times.
class OptimizerText {
  public:
    OptimizerText() = default;
    explicit OptimizerText(std::string_view text);

    std::string first(std::string_view key) const;                          // "" if there is none
    std::vector<std::vector<std::string>> all(std::string_view key) const;  // values of each

  private:
    std::vector<std::vector<std::string>> lines_;
};

// CUPTI recorded from `begin` to `end`; a window that was not ended was cut off by the end of the
// process.
struct RecordedWindow {
    std::uint64_t begin = 0, end = 0;  // time of day, ns
    bool ended = false;
    std::uint64_t launches_before = 0, launches_after = 0;
    std::string cupti;
    std::uint64_t cupti_version = 0;
    std::uint64_t not_kept = 0, spent = 0;
    std::optional<std::uint64_t> dropped;
    bool shared = false;
};

// Why there is no device timeline, or, of "steps", no steps of Python's optimizers.
struct RecordedLack {
    std::string text, call;
    std::uint64_t error = 0;  // a CUptiResult
    std::string cupti;
};

struct CuptiClient {
    std::string call, module;
    std::uint64_t offset = 0;
    std::uint64_t error = 0;  // a CUptiResult
    std::uint64_t time_ns = 0;
};

struct RecordedDevice {
    std::uint32_t ordinal = 0;
    std::string name, uuid, driver;
};

struct RecordedProfile {
    std::int32_t pid = 0;
    std::string path, mode;
    std::vector<DeviceRecord> device;    // by begin; times are ns since 1970
    std::uint64_t out_of_range = 0;      // records left out: their times are none of this run's
    std::vector<std::uint32_t> untimed;  // correlations of the kernels among these
    std::vector<std::string> names;      // of kernels, mangled
    std::vector<StepRecord> steps;       // in their order
    std::map<std::uint64_t, OptimizerText> optimizers;
    std::vector<RecordedWindow> windows;
    std::vector<RecordedLack> lacks;
    std::vector<CuptiClient> clients;
    std::vector<RecordedDevice> devices;
    Losses lost;
};

RecordedProfile recorded_profile_of(const Recording& recording);

}  // namespace cudiag
