// What can be said of a program before it starts: ld.so ends it before any preload runs when a
// library it needs is missing, and some programs never load a preload at all.
#pragma once

#include <string>
#include <vector>

#include "diagnose/finding.h"

namespace cudiag {

// `program` as execvp would find it. Empty when nothing stands in the way, or when it is not found
// (exec says that).
std::vector<Finding> check_program(const std::string& program);

}  // namespace cudiag
