// CUDIAG_PROFILE=optimizer|launches: a profile of this process (PID.prof) is recorded: what the GPU
// does, by CUPTI (libcudiag-cupti.so), and the optimizer's steps, by hooks in Python
// (step_hooks.h). CUPTI records in a window at the beginning; behind it only the steps' times are
// noted, which tell what the window cost.
//
// A process that is not profiled pays one load where this is asked.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace cudiag {

// Reads CUDIAG_PROFILE of the environment as it was remembered.
void read_profile_setting();

// Was it asked for, and is this a process to be profiled: no build tool, no child of fork?
bool profile_is_wanted();

// Does this process have a profile, which is to be kept whatever its end?
bool has_profile();

// The program is about to load a library: the first time, loads libcudiag-cupti.so into the global
// scope before it. In dlopen's entry, whose error state the program's own call replaces.
void prepare_profile();

// A kernel was looked up, the first: opens the profile and has CUPTI record. Outside of the driver,
// on any thread.
void begin_profile();

// A launch was made.
void count_launch();

// Calls that may be what a slow step waited for.
enum class SlowCall : uint8_t { load, allocation };

// When such a call begins, 0 if that is not counted; and that it has ended.
uint64_t slow_call_begins();
void slow_call_ended(SlowCall call, uint64_t began);

// The profile's part of step_hooks.h. An optimizer was seen for the first time: its number; notes
// the description. kNoOptimizer if there are too many, or nothing can be recorded.
inline constexpr uint32_t kNoOptimizer = UINT32_MAX;
uint32_t note_optimizer(const char* description, size_t size);
void step_begins(uint32_t optimizer);
void step_ended(uint32_t optimizer);

// The steps of Python's optimizers cannot be told, and why.
void note_no_steps(const char* why);

// The process ends: takes what CUPTI still holds. Not in a signal handler.
void end_profile();

// A fork child: nothing of CUPTI's works there.
void forget_profile();

}  // namespace cudiag
