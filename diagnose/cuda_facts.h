// What a recording tells of CUDA: the driver, its failed calls, and the launches.
#pragma once

#include "diagnose/facts.h"

namespace cudiag {

void add_cuda_facts(const Recording& recording, Process& process);

}  // namespace cudiag
