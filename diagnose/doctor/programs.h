// Programs of PATH, and what they print.
#pragma once

#include <string>
#include <vector>

#include "diagnose/doctor/facts.h"
#include "diagnose/loader/loader_run.h"

namespace cudiag {

// Where execvp(3) would find it; a name with a slash is itself. "" if it is nowhere, or not to be
// run.
std::string found_on_path(const std::string& program, const std::string& path);

// Runs a program in the given environment, for at most some seconds, with no input.
LoaderRun ask_program(const std::vector<std::string>& command, const Variables& environment,
                      int seconds = 5);

// Did it start and end with status 0?
bool succeeded(const LoaderRun& run);

// Its first line of complaint, or why it gave none.
std::string complaint_of(const LoaderRun& run);

}  // namespace cudiag
