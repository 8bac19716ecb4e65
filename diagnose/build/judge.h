// All build rules over one run: facts in, findings out.
#pragma once

#include <vector>

#include "diagnose/facts.h"

namespace cudiag {

struct BuildFinding {
    Finding finding;
    bool consequence = false;  // of the first of the list
};

// The cause first, then what else failed in the same build.
std::vector<BuildFinding> judge_build(const Facts& facts);

}  // namespace cudiag
