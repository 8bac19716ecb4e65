// Facts in, findings out: the causes first, each linked to what it explains.
#pragma once

#include <vector>

#include "diagnose/facts.h"
#include "diagnose/machine.h"

namespace cudiag {

// Reads ELF files and package databases of this machine, runs the loader dry; changes nothing.
std::vector<Finding> judge(const Facts& facts, const Machine& machine);

}  // namespace cudiag
