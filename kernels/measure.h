// What `cudiag bench adam` measures on one GPU.
#pragma once

#include <nlohmann/json.hpp>

#include "kernels/driver.h"
#include "kernels/plan.h"
#include "kernels/probe.h"

namespace cudiag {

// Measures, and gives the file of the card without what the command adds ("schema", "made", "by",
// "fused_error"); the rows of sizes that check are under "checks". In the current context; throws
// DriverError.
nlohmann::ordered_json measure_adam(const Driver& driver, const Gpu& gpu, const MeasurePlan& plan);

}  // namespace cudiag
