// The doctor's rules: each takes the facts and adds what it has to say of its question. They share
// slugs, knowledge and remedies with the rules that explain failures: what would fail is put to
// those in the words, or as the step, in which it would be seen.
#pragma once

#include <string>
#include <vector>

#include "diagnose/doctor/check.h"
#include "diagnose/doctor/facts.h"

namespace cudiag {

using Checks = std::vector<Check>;

// import: is torch there, for this Python, and does ld.so find all that it loads?
void check_torch(const DoctorFacts& facts, Checks& checks);
void check_torch_libraries(const DoctorFacts& facts, Checks& checks);
void check_mixed_wheels(const DoctorFacts& facts, Checks& checks);

// build: what compiles, and what torch refuses before it compiles.
void check_toolkit(const DoctorFacts& facts, Checks& checks);
void check_toolkit_release(const DoctorFacts& facts, Checks& checks);
void check_host_compilers(const DoctorFacts& facts, Checks& checks);
void check_headers(const DoctorFacts& facts, Checks& checks);
void check_architectures(const DoctorFacts& facts, Checks& checks);
void check_ninja(const DoctorFacts& facts, Checks& checks);
void check_link(const DoctorFacts& facts, Checks& checks);
void check_build_memory(const DoctorFacts& facts, Checks& checks);
void check_build_directory(const DoctorFacts& facts, Checks& checks);

// load: what was built, and what would be.
void check_built_runtime(const DoctorFacts& facts, Checks& checks);
void check_extensions(const DoctorFacts& facts, Checks& checks);

// launch: the driver, its devices, and whether it fits torch's runtime.
void check_driver(const DoctorFacts& facts, Checks& checks);
void check_shared_memory(const DoctorFacts& facts, Checks& checks);

// Everything, and the answers. Reads files, as the rules that explain do.
Examination examine(const DoctorFacts& facts);

// A CUDA release of two numbers by its major: "13.0" -> "13".
std::string major_of(const std::string& release);

}  // namespace cudiag
