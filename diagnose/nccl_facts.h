// What a recording tells of NCCL: its calls that failed, and the communicators that were made.
#pragma once

#include "diagnose/facts.h"

namespace cudiag {

void add_nccl_facts(const Recording& recording, Process& process);

}  // namespace cudiag
