// The steps of torch's optimizers, found without an edit of the program: torch's own hooks for the
// steps of all optimizers (torch.optim.optimizer, 2.1) are registered in the program's interpreter
// by step_hooks.py, on the main thread, between two instructions (Py_AddPendingCall).
#pragma once

namespace cudiag {

// Has the interpreter run step_hooks.py soon, unless that was done; it may be too early, so this is
// called again at later events. Any thread, with or without the GIL; not in a signal handler.
void arm_step_hooks();

// The program opened a file: once torch.optim is being imported, each is such an event.
void note_open_for_step_hooks(const char* path);

}  // namespace cudiag
