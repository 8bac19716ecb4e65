// The compiled kernels, as they are in the program (images.S): fatbins for cuModuleLoadData.
#pragma once

extern "C" const unsigned char kCudiagAdamImage[];
extern "C" const unsigned char kCudiagChunkedAdamImage[];
