// The steps of a build as a tree: who started what, how long it took, how much memory it held.
#pragma once

#include <string>

#include "diagnose/build/steps.h"
#include "present/terminal.h"

namespace cudiag {

// A line a step, the failing branch marked with '✗'. "" for a run without a build. At most some 200
// lines: of long builds what failed and what took longest.
std::string render_build(const Build& build, const Style& style);

}  // namespace cudiag
