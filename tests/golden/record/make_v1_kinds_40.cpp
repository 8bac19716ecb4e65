// Wrote v1_kinds_40.recording, which stays as it is: see make_v1.cpp.
//
//   g++ -std=c++20 -I. tests/golden/record/make_v1_kinds_40.cpp record/writer.cpp -o /tmp/make
//   (cd tests/golden/record && /tmp/make v1_kinds_40.recording)
#include <fcntl.h>

#include <array>
#include <cstdio>

#include "record/writer.h"

using cudiag::EntryKind;
using cudiag::Field;
using cudiag::FieldValue;

int main(int count, char** arguments) {
    if (count != 2) {
        (void)std::fprintf(stderr, "usage: make_v1_kinds_40 FILE\n");
        return 2;
    }
    cudiag::Writer writer;
    int error = 0;
    const cudiag::Identity identity{4712, 815, 4710, 123456790, 123456700};
    if (writer.open(AT_FDCWD, arguments[1], {2048, 0, 0}, identity, &error) !=
        cudiag::OpenResult::ok) {
        (void)std::fprintf(stderr, "make_v1_kinds_40: cannot write %s: errno %d\n", arguments[1],
                           error);
        return 1;
    }
    const std::array process = {FieldValue::of(Field::path, "/opt/conda/bin/python3.11"),
                                FieldValue::of(Field::argument, "python"),
                                FieldValue::of(Field::working_directory, "/home/user")};
    const std::array made = {FieldValue::of(Field::name, "ncclCommInitRankConfig"),
                             FieldValue::of(Field::error, std::uint64_t{0}),
                             FieldValue::of(Field::path, "/site/nvidia/nccl/lib/libnccl.so.2"),
                             FieldValue::of(Field::caller, "/site/torch/lib/libtorch_cuda.so"),
                             FieldValue::of(Field::caller_offset, std::uint64_t{0x1234}),
                             FieldValue::of(Field::communicator, std::uint64_t{0x5000}),
                             FieldValue::of(Field::ranks, std::uint64_t{2}),
                             FieldValue::of(Field::rank, std::uint64_t{1}),
                             FieldValue::of(Field::device_ordinal, std::uint64_t{0}),
                             FieldValue::of(Field::duration_ns, std::uint64_t{123456789})};
    const std::array failed = {
        FieldValue::of(Field::name, "ncclAllReduce"),
        FieldValue::of(Field::error, std::uint64_t{2}),
        FieldValue::of(Field::text,
                       "unhandled system error (run with NCCL_DEBUG=INFO for details)"),
        FieldValue::of(Field::last_error, "Call to getifaddrs failed: Too many open files"),
        FieldValue::of(Field::communicator, std::uint64_t{0x5000})};
    const std::array thrown = {FieldValue::of(Field::type, "N3c1016DistBackendErrorE"),
                               FieldValue::of(Field::text, "[Rank 0] Watchdog caught\nmore")};
    const std::array slow = {FieldValue::of(Field::name, "cuLaunchKernel"),
                             FieldValue::of(Field::duration_ns, std::uint64_t{4'500'000'000}),
                             FieldValue::of(Field::handle, std::uint64_t{0x6000}),
                             FieldValue::of(Field::path, "/site/mine.so"),
                             FieldValue::of(Field::code_offset, std::uint64_t{0x7000}),
                             FieldValue::of(Field::device_ordinal, std::uint64_t{0}),
                             FieldValue::of(Field::value, "NVIDIA H200"),
                             FieldValue::of(Field::limit, std::uint64_t{75} << 32 | 9)};
    const std::array asked = {FieldValue::of(Field::name, "cudaGetErrorString"),
                              FieldValue::of(Field::error, std::uint64_t{35}),
                              FieldValue::of(Field::text, "CUDA driver version is insufficient"),
                              FieldValue::of(Field::path, "/site/libcudart.so.13")};
    bool whole = writer.append(EntryKind::process, process.data(), process.size());
    whole &= writer.append(EntryKind::nccl_call, made.data(), made.size());
    whole &= writer.append(EntryKind::nccl_call, failed.data(), failed.size());
    whole &= writer.append(EntryKind::native_exception, thrown.data(), thrown.size());
    whole &= writer.append(EntryKind::cuda_code_slow, slow.data(), slow.size());
    whole &= writer.append(EntryKind::runtime_error_asked, asked.data(), asked.size());
    writer.mark_end(cudiag::EndHow::abort, 6);
    return whole ? 0 : 1;
}
