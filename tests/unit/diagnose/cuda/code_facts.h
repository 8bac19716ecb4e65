// Device code that a GPU or a driver did not take: small files of it, made by hand or by nvcc.
#pragma once

#include <filesystem>
#include <string>

#include "tests/unit/diagnose/cuda/running_facts.h"
#include "tests/unit/diagnose/loader/elf_world.h"

namespace cudiag::testing {

constexpr const char* kNvcc = "/usr/local/cuda/bin/nvcc";

inline bool has_nvcc() {
    return std::filesystem::exists(kNvcc);
}

// A little-endian number of `size` bytes.
inline std::string number(std::uint64_t value, std::size_t size) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) {
        bytes += static_cast<char>(i < sizeof value ? value >> (8 * i) & 0xff : 0);
    }
    return bytes;
}

// One image of a fatbin (diagnose/elf/fatbin.h): SASS, or PTX of a version.
inline std::string sass(unsigned sm, bool specific = false) {
    return number(2, 2) + number(0x101, 2) + number(64, 4) + number(8, 8) + number(0, 8) +
           number(0x90000, 4) + number(sm, 4) + number(0, 8) +
           number(specific ? 0x100011 : 0x11, 8) + number(0, 16) + "12345678";
}

inline std::string ptx(unsigned sm, unsigned major, unsigned minor) {
    return number(1, 2) + number(0x101, 2) + number(64, 4) + number(8, 8) + number(0, 8) +
           number(major << 16 | minor, 4) + number(sm, 4) + number(0, 8) + number(0x11, 8) +
           number(0, 16) + "12345678";
}

inline std::string fatbin(const std::string& images) {
    return number(0xba55ed50, 4) + number(1, 2) + number(16, 2) + number(images.size(), 8) + images;
}

// A failure to load a file of code.
inline FailedCudaCall loading(std::uint64_t error, const std::string& file) {
    FailedCudaCall call = failed_call("cuModuleLoad", error);
    call.asked_name = file;
    call.device = h200();
    return call;
}

// A failure to look a kernel up in code that a file holds.
inline FailedCudaCall looking_up(std::uint64_t error, const std::string& file,
                                 std::uint64_t address = 0) {
    FailedCudaCall call = failed_call("cuLibraryGetKernel", error);
    call.asked_name = "_Z4axpyPfi";
    call.code_file = file;
    call.code_address = address;
    call.device = h200();
    return call;
}

// A library from two sources, each for its own architectures, as nvcc and the linker make it. The
// wrappers of their fatbins follow each other in .nvFatBinSegment.
class TwoSources {
  public:
    TwoSources(const std::string& first_for, const std::string& second_for) {
        world_.text("first.cu", "__global__ void first(int* p) { *p = 1; }\n");
        world_.text("second.cu", "__global__ void second(int* p) { *p = 2; }\n");
        run(std::string{kNvcc} + " -c -Xcompiler -fPIC " + first_for + " first.cu -o first.o");
        run(std::string{kNvcc} + " -c -Xcompiler -fPIC " + second_for + " second.cu -o second.o");
        // By the host's linker: nvcc's own link step adds code of its own.
        run("c++ -shared first.o second.o -o libtwo.so");
    }

    std::string library() const { return world_.path("libtwo.so"); }

    // Virtual address of the wrapper of the first or the second source.
    std::uint64_t wrapper(std::size_t which) const {
        const std::string address =
            run("readelf -SW libtwo.so | sed -n 's/.* .nvFatBinSegment *[A-Z]* *\\([0-9a-f]*\\) "
                ".*/\\1/p'");
        constexpr std::size_t kWrapper = 24;
        return std::stoull(address.empty() ? "0" : address, nullptr, 16) + which * kWrapper;
    }

  private:
    std::string run(const std::string& command) const {
        return run_loader({"/bin/sh", "-c", command}, {"PATH=/usr/local/bin:/usr/bin:/bin"},
                          world_.path(), 300)
            .out;
    }

    ElfWorld world_;
};

}  // namespace cudiag::testing
