// dlopen and dlmopen: note the call, then *jump* to the real function, so that glibc sees the true caller. A wrapper in C would
// make the shim the caller, and the caller's DT_RPATH, DT_RUNPATH, $ORIGIN and namespace would be lost.
// The exec functions with a variable argument list jump too: only a jump hands it on untouched.
//
// dlsym jumps as well, for RTLD_NEXT and RTLD_DEFAULT; only names like the driver's ("cu" and a capital) and NCCL's ("ncc") are
// looked at first.
//
// Each entry calls a note function with the arguments, and the return address; it returns the
// address to jump to (never null). All argument registers are kept.

#if defined(__x86_64__)

// One object without the mark makes ld.so give up shadow stacks for the whole process: that would be our doing.
#if defined(__CET__)
#include <cet.h>
#endif

.macro ENTRY name
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
.endm

.macro LEAVE name
    .cfi_endproc
    .size \name, . - \name
.endm

// Two arguments and the return address to `function`, then on to what it gives.
.macro NOTE_AND_JUMP function
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq 24(%rsp), %rdx
    call \function
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%rax
.endm

    .hidden cudiag_real_dlsym
    .text
// void* dlopen(const char* file, int mode)
ENTRY dlopen
    NOTE_AND_JUMP cudiag_enter_dlopen
LEAVE dlopen

// void* dlmopen(Lmid_t namespace, const char* file, int mode)
ENTRY dlmopen
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    movq 24(%rsp), %rcx
    call cudiag_enter_dlmopen
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%rax
LEAVE dlmopen

// void* dlsym(void* handle, const char* name). Nearly every name leaves after one to three compares.
ENTRY dlsym
    testq %rsi, %rsi
    je 1f
    movzbl (%rsi), %eax
    cmpb $'n', %al
    je 3f
    cmpb $'c', %al
    jne 1f
    cmpb $'u', 1(%rsi)
    jne 1f
    movzbl 2(%rsi), %eax
    subl $'A', %eax
    cmpl $25, %eax
    jbe 2f
1:  movq cudiag_real_dlsym(%rip), %rax
    testq %rax, %rax
    je 2f
    jmp *%rax
3:  cmpb $'c', 1(%rsi)
    jne 1b
    cmpb $'c', 2(%rsi)
    jne 1b
2:  NOTE_AND_JUMP cudiag_enter_dlsym
LEAVE dlsym

// int exec*(…): six argument registers, and %al for the variable ones.
.macro EXEC name
ENTRY \name
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    pushq %r8
    .cfi_adjust_cfa_offset 8
    pushq %r9
    .cfi_adjust_cfa_offset 8
    pushq %rax
    .cfi_adjust_cfa_offset 8
    call cudiag_enter_\name
    movq %rax, %r11
    popq %rax
    .cfi_adjust_cfa_offset -8
    popq %r9
    .cfi_adjust_cfa_offset -8
    popq %r8
    .cfi_adjust_cfa_offset -8
    popq %rcx
    .cfi_adjust_cfa_offset -8
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%r11
LEAVE \name
.endm

#elif defined(__aarch64__)

.macro ENTRY name
    .globl \name
    .type \name, %function
    .p2align 4
\name:
    .cfi_startproc
    hint #34    // bti c
.endm

.macro LEAVE name
    .cfi_endproc
    .size \name, . - \name
.endm

.macro SAVE_ARGUMENTS
    stp x29, x30, [sp, #-80]!
    .cfi_adjust_cfa_offset 80
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
.endm

// x17 is a call-clobbered scratch register, and the one through which an indirect jump may enter a `bti c`.
.macro RESTORE_AND_JUMP
    mov x17, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldp x29, x30, [sp], #80
    .cfi_adjust_cfa_offset -80
    .cfi_restore x29
    .cfi_restore x30
    br x17
.endm

    .hidden cudiag_real_dlsym
    .text
ENTRY dlopen
    SAVE_ARGUMENTS
    mov x2, x30
    bl cudiag_enter_dlopen
    RESTORE_AND_JUMP
LEAVE dlopen

ENTRY dlmopen
    SAVE_ARGUMENTS
    mov x3, x30
    bl cudiag_enter_dlmopen
    RESTORE_AND_JUMP
LEAVE dlmopen

// Nearly every name leaves after one to three compares.
ENTRY dlsym
    cbz x1, 1f
    ldrb w9, [x1]
    cmp w9, #'n'
    b.eq 3f
    cmp w9, #'c'
    b.ne 1f
    ldrb w9, [x1, #1]
    cmp w9, #'u'
    b.ne 1f
    ldrb w9, [x1, #2]
    sub w9, w9, #'A'
    cmp w9, #25
    b.ls 2f
1:  adrp x17, cudiag_real_dlsym
    ldr x17, [x17, #:lo12:cudiag_real_dlsym]
    cbz x17, 2f
    br x17
3:  ldrb w9, [x1, #1]
    cmp w9, #'c'
    b.ne 1b
    ldrb w9, [x1, #2]
    cmp w9, #'c'
    b.ne 1b
2:  SAVE_ARGUMENTS
    bl cudiag_enter_dlsym
    RESTORE_AND_JUMP
LEAVE dlsym

.macro EXEC name
ENTRY \name
    SAVE_ARGUMENTS
    bl cudiag_enter_\name
    RESTORE_AND_JUMP
LEAVE \name
.endm

#else
#error "no entries for this architecture"
#endif

EXEC execl
EXEC execlp
EXEC execle
EXEC fexecve

    .section .note.GNU-stack, "", %progbits
