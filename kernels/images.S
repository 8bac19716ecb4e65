# The fatbins that nvcc made (CMakeLists.txt gives their paths), as read-only data.
    .section .rodata
    .globl cudiag_adam_image
    .hidden cudiag_adam_image
    .balign 64
cudiag_adam_image:
    .incbin CUDIAG_ADAM_FATBIN
    .globl cudiag_chunked_adam_image
    .hidden cudiag_chunked_adam_image
    .balign 64
cudiag_chunked_adam_image:
    .incbin CUDIAG_CHUNKED_ADAM_FATBIN
    .section .note.GNU-stack, "", %progbits
