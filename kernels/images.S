# The fatbins that nvcc made (CMakeLists.txt gives their paths), as read-only data.
    .section .rodata
    .globl kCudiagAdamImage
    .hidden kCudiagAdamImage
    .balign 64
kCudiagAdamImage:
    .incbin CUDIAG_ADAM_FATBIN
    .globl kCudiagChunkedAdamImage
    .hidden kCudiagChunkedAdamImage
    .balign 64
kCudiagChunkedAdamImage:
    .incbin CUDIAG_CHUNKED_ADAM_FATBIN
    .section .note.GNU-stack, "", %progbits
