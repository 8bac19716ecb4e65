// `cudiag doctor --build` and `--launch`: what is otherwise inferred is done, under the shim, and
// its failure explained by the rules that explain any other.
#pragma once

#include "diagnose/doctor/check.h"
#include "diagnose/doctor/facts.h"

namespace cudiag {

// Compiles and loads an extension of one kernel in a temporary folder: by torch where there is one,
// else by nvcc alone. Takes from seconds to some minutes.
Check really_build(const DoctorFacts& facts);

// Launches a kernel in a process of its own: by torch where there is one, else by the driver alone.
Check really_launch(const DoctorFacts& facts);

}  // namespace cudiag
