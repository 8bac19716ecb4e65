#include "kernels/probe.h"

#include <fmt/core.h>

#include <array>
#include <fstream>
#include <iterator>
#include <regex>

namespace cudiag {
namespace {

// enum CUdevice_attribute of cuda.h.
constexpr int kClockRate = 13;
constexpr int kMultiprocessorCount = 16;
constexpr int kMemoryClockRate = 36;
constexpr int kGlobalMemoryBusWidth = 37;
constexpr int kL2CacheSize = 38;
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;

int attribute(const Driver& driver, CuDevice device, int which) {
    int value = 0;
    CUDIAG_GPU(driver, cuDeviceGetAttribute, &value, which, device);
    return value;
}

// Clocks and the like are not given on every platform (0 then).
int optional_attribute(const Driver& driver, CuDevice device, int which) {
    int value = 0;
    return driver.cuDeviceGetAttribute(&value, which, device) == 0 ? value : 0;
}

}  // namespace

std::string uuid_text(const CuUuid& uuid) {
    std::string text = "GPU-";
    for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
        text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                            uuid.bytes[i]);
    }
    return text;
}

std::string release_in(const std::string& text) {
    // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue …", or "… Open Kernel Module
    // for x86_64  580.159.04  Release Build …"
    static const std::regex pattern{
        R"(Kernel Module\b[^0-9\n]*(?:x86_64|aarch64)?\s+([0-9]+(?:\.[0-9]+)+)\s)"};
    std::smatch match;
    return std::regex_search(text, match, pattern) ? match[1].str() : std::string{};
}

int count_gpus(const Driver& driver) {
    int count = 0;
    CUDIAG_GPU(driver, cuDeviceGetCount, &count);
    return count;
}

Gpu probe(const Driver& driver, int index) {
    Gpu gpu;
    CUDIAG_GPU(driver, cuDeviceGet, &gpu.device, index);
    std::array<char, 256> name{};
    CUDIAG_GPU(driver, cuDeviceGetName, name.data(), static_cast<int>(name.size() - 1), gpu.device);
    gpu.name = name.data();
    CuUuid uuid{};
    CUDIAG_GPU(driver, cuDeviceGetUuid_v2, &uuid, gpu.device);
    gpu.uuid = uuid_text(uuid);
    std::size_t memory = 0;
    CUDIAG_GPU(driver, cuDeviceTotalMem_v2, &memory, gpu.device);
    gpu.memory_bytes = memory;
    gpu.sm = fmt::format("{}.{}", attribute(driver, gpu.device, kComputeCapabilityMajor),
                         attribute(driver, gpu.device, kComputeCapabilityMinor));
    gpu.multiprocessors = attribute(driver, gpu.device, kMultiprocessorCount);
    gpu.clock_khz = optional_attribute(driver, gpu.device, kClockRate);
    gpu.memory_clock_khz = optional_attribute(driver, gpu.device, kMemoryClockRate);
    gpu.memory_bus_bits = optional_attribute(driver, gpu.device, kGlobalMemoryBusWidth);
    gpu.cache_bytes =
        static_cast<std::uint64_t>(optional_attribute(driver, gpu.device, kL2CacheSize));
    CUDIAG_GPU(driver, cuDriverGetVersion, &gpu.driver_cuda);
    std::ifstream version{"/proc/driver/nvidia/version"};
    gpu.driver = release_in(std::string{std::istreambuf_iterator<char>{version}, {}});
    return gpu;
}

nlohmann::ordered_json to_json(const Gpu& gpu) {
    return {{"uuid", gpu.uuid},
            {"name", gpu.name},
            {"sm", gpu.sm},
            {"multiprocessors", gpu.multiprocessors},
            {"memory_bytes", gpu.memory_bytes},
            {"clock_khz", gpu.clock_khz},
            {"memory_clock_khz", gpu.memory_clock_khz},
            {"memory_bus_bits", gpu.memory_bus_bits},
            {"cache_bytes", gpu.cache_bytes},
            {"driver", gpu.driver},
            {"driver_cuda", gpu.driver_cuda}};
}

}  // namespace cudiag
