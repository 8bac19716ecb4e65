#include "shim/build_tools.h"

#include <gtest/gtest.h>
#include <limits.h>

#include <filesystem>
#include <string>

namespace cudiag {
namespace {

TEST(BuildRoleTest, KnowsTheStepsOfCudaAndOfItsHostCompilers) {
    for (const char* name :
         {"nvcc",        "cudafe++", "cicc",  "ptxas",   "fatbinary", "nvlink",   "cc1",
          "cc1plus",     "gcc",      "g++",   "cc",      "c++",       "collect2", "lto1",
          "lto-wrapper", "as",       "clang", "clang++", "ccache",    "sccache"}) {
        EXPECT_EQ(build_role(name), BuildRole::step) << name;
    }
}

TEST(BuildRoleTest, KnowsEveryLinker) {
    for (const char* name : {"ld", "ld.bfd", "ld.gold", "gold", "lld", "ld.lld", "mold"}) {
        EXPECT_EQ(build_role(name), BuildRole::step) << name;
    }
}

TEST(BuildRoleTest, LooksBehindATargetAndAVersion) {
    for (const char* name :
         {"gcc-12", "g++-4.8", "clang++-14", "clang-14", "x86_64-linux-gnu-g++-12",
          "x86_64-linux-gnu-gcc", "x86_64-conda-linux-gnu-c++", "aarch64-linux-gnu-ld.bfd",
          "x86_64-linux-gnu-as", "lto-wrapper-12", "ld.lld-14", "nvcc-12.4"}) {
        EXPECT_EQ(build_role(name), BuildRole::step) << name;
    }
}

TEST(BuildRoleTest, KnowsWhoStartsABuildByItself) {
    for (const char* name :
         {"ninja", "ninja-build", "make", "gmake", "cmake", "cmake3", "make-4.3"}) {
        EXPECT_EQ(build_role(name), BuildRole::coordinator) << name;
    }
}

TEST(BuildRoleTest, TakesNoOtherProgramForOne) {
    for (const char* name : {"",
                             "-",
                             "-12",
                             "python3",
                             "python3.11",
                             "sh",
                             "bash",
                             "nvcc2",
                             "gccgo",
                             "mygcc",
                             "cclang",
                             "unmold",
                             "gcc-ar",
                             "gcc-12-x",
                             "ldd",
                             "gas",
                             "ninjas",
                             "cmake-gui",
                             "nvcc.profile",
                             "nvidia-smi",
                             "ld-linux-x86-64.so.2",
                             "basic"}) {
        EXPECT_EQ(build_role(name), BuildRole::not_one) << name;
    }
}

TEST(CudaCompilerTest, IsNvccAlone) {
    EXPECT_TRUE(is_cuda_compiler("nvcc"));
    for (const char* name : {"cicc", "nvc++", "nvcc_internal_extended_lambda", "clang++", ""}) {
        EXPECT_FALSE(is_cuda_compiler(name)) << name;
    }
}

TEST(ShellTest, IsOneOfTheShellsByItsWholeName) {
    for (const char* name : {"sh", "bash", "dash", "zsh", "fish", "busybox"}) {
        EXPECT_TRUE(is_shell(name)) << name;
    }
    for (const char* name : {"ssh", "sh5", "bashdb", "python3", "env", ""}) {
        EXPECT_FALSE(is_shell(name)) << name;
    }
}

TEST(OwnProgramTest, IsTheBaseNameOfThisExecutable) {
    char buffer[PATH_MAX];
    EXPECT_EQ(own_program(buffer, sizeof buffer),
              std::filesystem::read_symlink("/proc/self/exe").filename().string());
    char tiny[2];
    EXPECT_LT(std::string(own_program(tiny, sizeof tiny)).size(), sizeof tiny);
}

}  // namespace
}  // namespace cudiag
