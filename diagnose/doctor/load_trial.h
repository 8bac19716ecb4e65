// What ld.so says of a library that Python would load: a dry run, no constructor is called.
#pragma once

#include "diagnose/doctor/facts.h"

namespace cudiag {

// A process of this Python as it would be: for the model of ld.so and for the rules.
Process process_to_be(const PythonEnvironment& python, const Variables& environment);

// `import torch`, as far as its libraries go.
LoadTrial trial_of_import(const DoctorFacts& facts);

// One file, loaded by this Python before anything else.
LoadTrial trial_alone(const DoctorFacts& facts, const std::string& file);

// Compiled modules of packages that are linked with torch, and what torch's own cache of builds
// holds, each tried after `import torch`. The first failure is each one's own.
std::vector<Extension> extensions_of(const DoctorFacts& facts);

}  // namespace cudiag
