// What the driver says of a GPU.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "kernels/driver.h"

namespace cudiag {

struct Gpu {
    CuDevice device = 0;
    std::string uuid;  // as nvidia-smi writes it: "GPU-4d2a…"
    std::string name;
    std::string sm;  // "9.0"
    int multiprocessors = 0;
    std::uint64_t memory_bytes = 0;
    int clock_khz = 0;
    int memory_clock_khz = 0;
    int memory_bus_bits = 0;
    std::uint64_t cache_bytes = 0;  // L2
    int driver_cuda = 0;            // newest CUDA that the driver knows: 13000
    std::string driver;             // release, from /proc/driver/nvidia/version; "" without it
};

// Throws DriverError. `index` as CUDA counts, within CUDA_VISIBLE_DEVICES.
Gpu probe(const Driver& driver, int index);
int count_gpus(const Driver& driver);

nlohmann::ordered_json to_json(const Gpu& gpu);

// "580.159.04" of the text of /proc/driver/nvidia/version; "" if it is not there.
std::string release_in(const std::string& text);

// "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
std::string uuid_text(const CuUuid& uuid);

}  // namespace cudiag
