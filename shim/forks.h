// Whose memory is this? A fork child has a copy of its parent's, and must begin afresh; a vfork
// child works in its parent's own, and must leave no trace there.
#pragma once

namespace cudiag {

// Remembers this process as the owner of its memory. `begin_afresh` is called in each fork child,
// from fork itself or, where fork was a raw clone, from the first check_fork. Called once.
void watch_forks(void (*begin_afresh)());

// Calls `begin_afresh` if this is a fork child in which that was not done yet. One load otherwise.
void check_fork();

// True in a child that shares its parent's memory (vfork, posix_spawn, CLONE_VM). One system call.
bool in_vfork_child();

// True in a process that was made by fork and has not exec'ed since.
bool is_fork_child();

}  // namespace cudiag
