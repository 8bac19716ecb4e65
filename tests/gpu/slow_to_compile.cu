// A program whose kernels are PTX alone, and take the driver's compiler some seconds: slow_to_compile [STATUS]
//
//   nvcc -gencode arch=compute_80,code=compute_80 [-cudart shared] -o slow_to_compile slow_to_compile.cu
#include <cstdio>
#include <cstdlib>

template <int salt>
__global__ void long_kernel(float* out, int count) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    float x = static_cast<float>(i + salt);
    float y = 1.0f;
#pragma unroll
    for (int turn = 0; turn < 700; ++turn) {
        x = x * 1.0001f + y / (x * x + 1.5f + static_cast<float>(turn));
        y = y * x - static_cast<float>(turn ^ salt) * 0.001f + sqrtf(x * x + y * y);
    }
    if (i < count) {
        out[i] = x + y;
    }
}

static void check(cudaError_t error) {
    if (error != cudaSuccess) {
        std::printf("%s\n", cudaGetErrorString(error));
        std::exit(9);
    }
}

int main(int count, char** arguments) {
    float* out = nullptr;
    check(cudaMalloc(reinterpret_cast<void**>(&out), 4096));
    long_kernel<1><<<4, 256>>>(out, 1024);
    check(cudaGetLastError());
    long_kernel<2><<<4, 256>>>(out, 1024);
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
    std::puts("done");
    return count > 1 ? std::atoi(arguments[1]) : 0;
}
