// The functions of the libcupti that this process has, or gets.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cupti/interface.h"

namespace cudiag {

using RequestBuffer = void (*)(uint8_t** buffer, size_t* size, size_t* most_records);
using CompleteBuffer = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size,
                                size_t valid);
using TimestampCallback = uint64_t (*)();

struct Cupti {
// NOLINTNEXTLINE(bugprone-macro-parentheses): parts of a declaration, which can bear none
#define CUDIAG_CUPTI(name, parameters) int(*name) parameters;
#include "cupti/cupti.def"
#undef CUDIAG_CUPTI
    char path[512];

    bool found() const {
        return cuptiActivityEnable != nullptr;
    }
};

// The libcupti that is mapped, the first in link-map order; functions are null without one, and
// where it lacks them. Walks the link map until one was found; takes the loader's lock.
const Cupti& cupti();

// The same, after loading one that fits the process's CUDA if none is mapped: beside its libcudart,
// as a wheel or a toolkit has it, else where ld.so finds it, else in /usr/local/cuda.
const Cupti& load_cupti(const CuptiHost& host);

}  // namespace cudiag
