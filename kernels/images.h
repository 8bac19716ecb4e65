// The compiled kernels, as they are in the program (images.S): fatbins for cuModuleLoadData.
#pragma once

extern "C" const unsigned char cudiag_adam_image[];
extern "C" const unsigned char cudiag_chunked_adam_image[];
