// The steps of kernels/adam.h for Python's ctypes, so that tests/gpu/adam.py makes them on torch's
// own tensors, in torch's context. A function that fails returns null or 1; cudiag_error() says
// why.
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "kernels/adam.h"
#include "kernels/images.h"

namespace {

using namespace cudiag;

std::string last_error;

const Driver& driver() {
    static const Driver the_driver;
    return the_driver;
}

AdamKind kind_of(int dtype, int master, int amsgrad) {
    return {.dtype = static_cast<Dtype>(dtype), .master = master != 0, .amsgrad = amsgrad != 0};
}

template <typename Function>
int guarded(Function function) {
    try {
        function();
        return 0;
    } catch (const std::exception& error) {
        last_error = error.what();
        return 1;
    }
}

std::vector<AdamTensor> tensors_from(const AdamTensor* tensors, std::size_t count) {
    return {tensors, tensors + count};
}

}  // namespace

#define CUDIAG_TEST_API extern "C" __attribute__((visibility("default")))

CUDIAG_TEST_API const char* cudiag_error() {
    return last_error.c_str();
}

CUDIAG_TEST_API void* cudiag_adam_open(int dtype, int master, int amsgrad) {
    AdamW* adam = nullptr;
    (void)guarded(
        [&] { adam = new AdamW(driver(), kCudiagAdamImage, kind_of(dtype, master, amsgrad)); });
    return adam;
}

CUDIAG_TEST_API int cudiag_adam_step(void* adam, const AdamTensor* tensors, std::size_t count,
                                     const AdamPreparation* options, CuStream stream) {
    return guarded(
        [&] { static_cast<AdamW*>(adam)->step(tensors_from(tensors, count), *options, stream); });
}

CUDIAG_TEST_API void cudiag_adam_close(void* adam) {
    delete static_cast<AdamW*>(adam);
}

CUDIAG_TEST_API void* cudiag_chunked_open(int dtype, int large, int doubles) {
    ChunkedAdamW* adam = nullptr;
    (void)guarded([&] {
        adam = new ChunkedAdamW(driver(), kCudiagChunkedAdamImage,
                                {.dtype = static_cast<Dtype>(dtype),
                                 .large_tables = large != 0,
                                 .double_math = doubles != 0});
    });
    return adam;
}

CUDIAG_TEST_API int cudiag_chunked_step(void* adam, const AdamTensor* tensors,
                                        const std::uint64_t* steps, std::size_t count,
                                        const AdamPreparation* options, CuStream stream) {
    return guarded([&] {
        static_cast<ChunkedAdamW*>(adam)->step(tensors_from(tensors, count), {steps, steps + count},
                                               *options, stream);
    });
}

CUDIAG_TEST_API std::size_t cudiag_chunked_launches(void* adam) {
    return static_cast<ChunkedAdamW*>(adam)->launches();
}
