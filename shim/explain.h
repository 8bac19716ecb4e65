// Starts the command that explains, outside the program: clean environment, none of its
// descriptors, no SIGCHLD, and no child that its wait() would see.
#pragma once

namespace cudiag {

// Starts the explanation and waits for it, at most 10 s. For the end of the root process.
void explain_at_exit();

// Starts the explanation of certain breakage in a process that may live on; once, in the root only,
// not waited for. The command itself waits and says nothing if the process ends soon: then it is
// told about at the end.
void explain_early();

// Starts the command beside a program that goes on: `when` is "lock" or "build" (cli/in_place.cpp).
// In the root, or in a process that writes to the same place as the root. Not waited for; nothing
// is started while another one runs.
void explain_while_it_runs(const char* when);

// Takes the end of an early explanation to notice, if there is one: no zombie stays for long.
void reap_explanation();

// In a fork child: explanations of the parent's are none of its own.
void forget_explanation();

}  // namespace cudiag
