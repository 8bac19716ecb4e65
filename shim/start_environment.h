// The environment as the process was started with it: what ld.so saw. Programs change theirs later.
#pragma once

#include <stddef.h>

namespace cudiag {

// Copies the variables of the start that are of use: programs that set their title (setproctitle)
// write over the strings themselves. Called once, by begin. No allocation.
void remember_environment(char** environment);

// The value of a variable at the start, or nullptr. Only names that may be recorded or that the
// command needs.
const char* start_variable(const char* name);

// Calls `each(name, name_length, value, context)` for every remembered variable that may be
// recorded.
void for_each_recorded(void (*each)(const char*, size_t, const char*, void*), void* context);

// Fills `to` with "NAME=VALUE" strings that the command is started with, ended by nullptr; at most
// `most` - 1.
void command_environment(const char** to, size_t most);

}  // namespace cudiag
