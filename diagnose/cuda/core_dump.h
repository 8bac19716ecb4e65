// A core dump of the GPU, as the driver writes one when a kernel ends by an exception and it was
// told to: which threads had it, where, and in which kernel. The file is ELF; its layout is
// NVIDIA's (cudacoredump.h of CUDA 12.9 and later), and each of its tables may grow at the end of
// its rows.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace cudiag {

// A thread that had an exception; or, where the threads of a multiprocessor were gone by then, the
// exception that it kept.
struct GpuException {
    std::uint32_t code = 0;  // CUDBGException_t (knowledge/gpu_exceptions.h); 0: the thread had
                             // stopped at a trap or a breakpoint, and nobody had another exception
    std::uint64_t sm = 0;
    bool thread_known = false;  // so are block_index and thread_index
    std::array<std::uint64_t, 3> block_index{}, thread_index{};
    std::array<std::uint64_t, 3> grid{}, block{};  // of the launch; 0 if not known
    std::string kernel = {};                       // mangled; "" if not known
    std::uint64_t pc = 0;                          // an address of the GPU; 0 if not known
    std::string function = {};                     // that the pc is in, mangled; "" if not known
    std::uint64_t offset = 0;                      // of the pc in it
    std::string source = {};  // "/src/adam.cu:26"; "" unless compiled with line tables
};

struct GpuCore {
    std::string path;
    std::string problem;            // why it could not be read; "" if it could
    std::string device;             // the first one with an exception: "NVIDIA H200"
    std::string generator;          // what wrote it: "UD"; "" if not told (before driver 565)
    std::string driver, cuda;       // its versions: "580.159", "13.0"; "" if not told
    std::uint64_t timestamp_s = 0;  // since 1970; 0 if not told
    std::uint64_t threads = 0;      // that had an exception
    std::vector<GpuException> exceptions;  // the first of them, in the order of the file
};

// Never fails: what cannot be read is in `problem`. Costs time by the size of the tables and of the
// modules' code, not by that of the memory which was dumped.
GpuCore read_gpu_core(const std::string& path);

}  // namespace cudiag
