// The text of step_hooks.py, ended by NUL.

// One object without the mark makes ld.so give up shadow stacks for the whole process: that would be our doing.
#if defined(__CET__)
#include <cet.h>
#endif

    .section .rodata
    .globl cudiag_step_hooks
    .hidden cudiag_step_hooks
    .type cudiag_step_hooks, %object
cudiag_step_hooks:
    .incbin "shim/step_hooks.py"
    .byte 0
    .size cudiag_step_hooks, . - cudiag_step_hooks

    .section .note.GNU-stack, "", %progbits
