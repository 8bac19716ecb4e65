#include "kernels/probe.h"

#include <gtest/gtest.h>

namespace cudiag {
namespace {

TEST(DriverRelease, IsReadOfEitherKernelModule) {
    EXPECT_EQ(
        release_in("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 "
                   "22:23:56 UTC 2024\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"),
        "550.54.15");
    EXPECT_EQ(release_in("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  "
                         "Release Build  (dvs-builder@U22)\n"),
              "580.159.04");
    EXPECT_EQ(release_in("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  570.26  "
                         "Release Build\n"),
              "570.26");
    EXPECT_EQ(release_in(""), "");
    EXPECT_EQ(release_in("GCC version:  gcc version 12.2.0"), "");
}

TEST(UuidText, IsWrittenAsNvidiaSmiDoes) {
    CuUuid uuid{};
    for (unsigned char i = 0; i < sizeof uuid.bytes; ++i) {
        uuid.bytes[i] = static_cast<unsigned char>(0xf0 + i);
    }
    EXPECT_EQ(uuid_text(uuid), "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
}

}  // namespace
}  // namespace cudiag
