// Device code that a GPU or a driver did not take: small files of it, made by hand or by nvcc.
#pragma once

#include <filesystem>
#include <string>

#include "tests/unit/diagnose/cuda/running_facts.h"
#include "tests/unit/diagnose/elf/made_fatbin.h"
#include "tests/unit/diagnose/loader/elf_world.h"

namespace cudiag::testing {

constexpr const char* kNvcc = "/usr/local/cuda/bin/nvcc";

inline bool has_nvcc() {
    return std::filesystem::exists(kNvcc);
}

// One image of a fatbin: SASS, or PTX of a version.
inline std::string sass(unsigned sm, bool specific = false) {
    return image(2, sm, specific ? 0x100011 : 0x11);
}

inline std::string ptx(unsigned sm, unsigned major, unsigned minor) {
    return image(1, sm, 0x11, "12345678", major << 16 | minor);
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
