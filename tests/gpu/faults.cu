// Faults on purpose: faults KIND [STREAMS BEFORE AFTER]. BEFORE harmless kernels in turn on STREAMS streams, the faulty one on stream 1, AFTER
// harmless ones; then all is waited for. Exit status 3 with the runtime's words after the first error.
//
//   fine time toggled | oob assert misaligned trap loop | block grid shared | noimage badptx memory | reset context
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

__global__ void harmless(float* x, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) {
        x[i] = x[i] * 0.5f + 1.0f;
    }
}

__global__ void writes_out_of_bounds(float* x, size_t far) {
    x[far + threadIdx.x] = 1.0f;
}

__global__ void asserts(const int* x) {
    assert(x[threadIdx.x] == 12345);
}

__global__ void reads_misaligned(const char* x, int* to) {
    *to = *reinterpret_cast<const int*>(x + 1);
}

__global__ void traps() {
    __trap();
}

__global__ void never_ends(volatile int* x) {
    while (*x == 0) {
    }
}

__global__ void nothing() {}

namespace {

void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s: %d %s\n", what, static_cast<int>(error), cudaGetErrorString(error));
        std::exit(3);
    }
}

void load_bad_ptx() {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    check(cudaFree(nullptr), "cudaFree");
    check(cudaGetDriverEntryPointByVersion("cuModuleLoadData", &entry, 12000, cudaEnableDefault, &found), "cudaGetDriverEntryPoint");
    CUmodule module = nullptr;
    const char* ptx = ".version 9.9\n.target sm_90\n.address_size 64\n.visible .entry f() { ret; }\n";
    const CUresult result = reinterpret_cast<CUresult (*)(CUmodule*, const void*)>(entry)(&module, ptx);
    if (result != CUDA_SUCCESS) {
        std::fprintf(stderr, "cuModuleLoadData: %d\n", static_cast<int>(result));
        std::exit(3);
    }
}

// The driver's own function, as a program that was written for the driver finds it.
template <class Function>
Function* of_driver(const char* name) {
    static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    auto* const function = reinterpret_cast<Function*>(driver == nullptr ? nullptr : dlsym(driver, name));
    if (function == nullptr) {
        std::fprintf(stderr, "no %s\n", name);
        std::exit(3);
    }
    return function;
}

// A context that the program made itself, which cudart then works in.
CUcontext own_context() {
    CUcontext own = nullptr;
    if (of_driver<CUresult(unsigned)>("cuInit")(0) != CUDA_SUCCESS ||
        of_driver<CUresult(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2")(&own, 0, 0) != CUDA_SUCCESS) {
        std::fputs("no context\n", stderr);
        std::exit(3);
    }
    return own;
}

void destroy(CUcontext own) {
    const CUresult result = of_driver<CUresult(CUcontext)>("cuCtxDestroy_v2")(own);
    if (result != CUDA_SUCCESS) {
        std::fprintf(stderr, "cuCtxDestroy: %d\n", static_cast<int>(result));
        std::exit(3);
    }
}

void time_launches(int count) {
    nothing<<<1, 1>>>();
    check(cudaDeviceSynchronize(), "warm");
    double best = 1e9;
    for (int round = 0; round < 40; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < count; ++i) {
            nothing<<<1, 1>>>();
        }
        const auto took = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / count;
        check(cudaDeviceSynchronize(), "time");
        best = took < best ? took : best;
    }
    std::printf("%.1f ns a launch\n", best);
}

double time_block() {
    constexpr int kLaunches = 400;  // fewer than a GPU takes before the host waits for it (1024)
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) {
        nothing<<<1, 1>>>();
    }
    const auto took = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / kLaunches;
    check(cudaDeviceSynchronize(), "time");
    return took;
}

void print(const char* what, std::vector<double>& added) {
    std::sort(added.begin(), added.end());
    const size_t n = added.size();
    std::printf("%s: median %+.1f ns, quartiles %+.1f to %+.1f, its own uncertainty +-%.1f (%zu pairs)\n", what, added[n / 2], added[n / 4], added[n - n / 4],
                1.57 * (added[n - n / 4] - added[n / 4]) / std::sqrt(static_cast<double>(n)), n);
}

// With tests/gpu/toggle.c preloaded: blocks of launches with and without the shim in turn, and as many pairs of blocks without.
void time_toggled(int pairs) {
    auto* const toggle = reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "cudiag_test_toggle"));
    nothing<<<1, 1>>>();
    check(cudaDeviceSynchronize(), "warm");
    if (toggle == nullptr || toggle(1) == 0) {
        std::fputs("nothing to toggle\n", stderr);
        std::exit(3);
    }
    std::vector<double> added, forwarded, null, bare;
    for (int pair = 0; pair < pairs; ++pair) {
        double took[4];  // each of these in another order from pair to pair
        for (int k = 0; k < 4; ++k) {
            const int which = (k + pair) % 4;
            constexpr int kWays[] = {1, 0, 0, 2};
            toggle(kWays[which]);
            took[which] = time_block();
        }
        added.push_back(took[0] - took[1]);
        forwarded.push_back(took[3] - took[2]);
        null.push_back(took[2] - took[1]);
        bare.push_back(took[1]);
    }
    double clock = 1e9;
    for (int round = 0; round < 20; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < 100000; ++i) {
            asm volatile("rdtsc" ::: "eax", "edx");
        }
        clock = std::min(clock, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / 100000);
    }
    print("the shim", added);
    print("a function that only hands the launch on", forwarded);
    print("nothing (the null comparison)", null);
    std::sort(bare.begin(), bare.end());
    std::printf("on a launch of %.0f ns; reading the clock (rdtsc) takes %.1f ns\n", bare[bare.size() / 2], clock);
}

}  // namespace

int main(int argc, char** argv) {
    const char* kind = argc > 1 ? argv[1] : "fine";
    const int streams = argc > 2 ? std::atoi(argv[2]) : 4, before = argc > 3 ? std::atoi(argv[3]) : 5000, after = argc > 4 ? std::atoi(argv[4]) : 5000;
    const auto is = [&](const char* name) { return std::strcmp(kind, name) == 0; };
    if (is("time")) {
        time_launches(before);
        return 0;
    }
    if (is("toggled")) {
        time_toggled(before);
        return 0;
    }
    const CUcontext context = is("context") ? own_context() : nullptr;
    float* x = nullptr;
    check(cudaMalloc(&x, 1 << 20), "cudaMalloc");
    check(cudaMemset(x, 0, 1 << 20), "cudaMemset");
    std::vector<cudaStream_t> all(static_cast<size_t>(streams));
    for (cudaStream_t& stream : all) {
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    }
    for (int i = 0; i < before; ++i) {
        harmless<<<64, 256, 0, all[static_cast<size_t>(i % streams)]>>>(x, 16384);
    }
    const cudaStream_t own = all[static_cast<size_t>(1 % streams)];
    if (is("oob")) writes_out_of_bounds<<<2, 32, 0, own>>>(x, size_t{1} << 42);
    if (is("assert")) asserts<<<3, 32, 0, own>>>(reinterpret_cast<const int*>(x));
    if (is("misaligned")) reads_misaligned<<<1, 1, 0, own>>>(reinterpret_cast<const char*>(x), reinterpret_cast<int*>(x));
    if (is("trap")) traps<<<1, 1, 0, own>>>();
    if (is("loop")) never_ends<<<1, 1, 0, own>>>(reinterpret_cast<volatile int*>(x + 200000));
    if (is("block")) { nothing<<<1, 2048, 0, own>>>(); check(cudaGetLastError(), "nothing<<<1, 2048>>>"); }
    if (is("grid")) { nothing<<<dim3(1, 70000), 32, 0, own>>>(); check(cudaGetLastError(), "nothing<<<(1, 70000)>>>"); }
    if (is("shared")) { nothing<<<1, 32, 100000, own>>>(); check(cudaGetLastError(), "nothing<<<shared>>>"); }
    if (is("memory")) { void* more = nullptr; check(cudaMalloc(&more, size_t{1} << 45), "cudaMalloc"); }
    if (is("reset")) check(cudaDeviceReset(), "cudaDeviceReset");
    if (is("context")) destroy(context);
    if (is("badptx")) load_bad_ptx();
    if (is("noimage")) { nothing<<<1, 1>>>(); check(cudaGetLastError(), "nothing"); }
    for (int i = 0; i < after; ++i) {
        harmless<<<64, 256, 0, all[static_cast<size_t>(i % streams)]>>>(x, 16384);
        check(cudaGetLastError(), "harmless");
    }
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::puts("fine");
    return 0;
}
