#include "diagnose/loader/mapped.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/unit/diagnose/loader/elf_world.h"

namespace cudiag {
namespace {

Module module_of(const std::string& path) {
    struct stat about {};

    EXPECT_EQ(stat(path.c_str(), &about), 0) << path;
    Module module;
    module.path = path;
    module.inode = about.st_ino;
    module.device = about.st_dev;
    return module;
}

const MappedLibrary* of(const std::vector<MappedLibrary>& libraries, const std::string& path) {
    for (const MappedLibrary& library : libraries) {
        if (library.path == path) {
            return &library;
        }
    }
    return nullptr;
}

TEST(MappedLibraries, TellWhoNeedsThemAndWhichAreThereTwice) {
    const ElfWorld world;
    const std::string older = world.library("a/libcudart.so.12");
    const std::string newer = world.library("b/libcudart.so.13");
    const std::string nccl = world.library(
        "b/libnccl.so.2", {.source = "const char v[] = \"NCCL version 2.28.9+cuda13.0\";"});
    const std::string ops = world.library("ops.so", {.needs = {"b/libcudart.so.13"}});
    const auto libraries =
        mapped_libraries({module_of(older), module_of(ops), module_of(newer), module_of(nccl)});
    ASSERT_EQ(libraries.size(), 3U) << "ops.so is no library of CUDA";
    EXPECT_EQ(of(libraries, newer)->needed_by, std::vector<std::string>{ops});
    EXPECT_TRUE(of(libraries, older)->needed_by.empty());
    EXPECT_TRUE(of(libraries, older)->twice);
    EXPECT_TRUE(of(libraries, newer)->twice);
    EXPECT_FALSE(of(libraries, nccl)->twice);
    EXPECT_EQ(of(libraries, nccl)->version, "2.28.9");
    EXPECT_EQ(of(libraries, nccl)->family, "nccl");
}

TEST(MappedLibraries, OfOneFileUnderTwoNamesAreOne) {
    const ElfWorld world;
    const std::string file = world.library("a/libcudart.so.12");
    std::filesystem::create_symlink(file, world.path("libcudart.so"));
    const auto libraries =
        mapped_libraries({module_of(file), module_of(world.path("libcudart.so"))});
    ASSERT_EQ(libraries.size(), 1U);
    EXPECT_FALSE(libraries[0].twice);
}

TEST(MappedLibraries, HaveNoVersionWhereTheFileIsNoLongerTheOneThatWasMapped) {
    const ElfWorld world;
    const std::string nccl = world.library(
        "libnccl.so.2", {.source = "const char v[] = \"NCCL version 2.28.9+cuda13.0\";"});
    Module module = module_of(nccl);
    EXPECT_EQ(mapped_libraries({module})[0].since, "");
    module.inode += 1;
    const auto replaced = mapped_libraries({module});
    EXPECT_EQ(replaced[0].since, "replaced");
    EXPECT_EQ(replaced[0].version, "");
    std::filesystem::remove(nccl);
    EXPECT_EQ(mapped_libraries({module})[0].since, "gone");
}

TEST(ProcessLibraries, AreOfProcessesWithCudaInThem) {
    const ElfWorld world;
    Facts facts;
    facts.processes.resize(3);
    facts.processes[0].pid = 1;  // no list of modules
    facts.processes[1].pid = 2;
    facts.processes[1].snapshots[1] = {module_of(world.library("libm.so.6"))};
    facts.processes[2].pid = 3;
    facts.processes[2].snapshots[1] = {};
    facts.processes[2].snapshots[2] = {module_of(world.library("libcudart.so.12")),
                                       module_of(world.library("libcuda.so.550.54.14"))};
    facts.processes[2].cuda_driver =
        CudaDriver{.path = world.path("libcuda.so.550.54.14"), .version = 12040};
    const auto all = libraries_of(facts);
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].pid, 3);
    EXPECT_EQ(all[0].driver.release, "550.54.14");
    EXPECT_EQ(all[0].driver.cuda, "12.4");
    ASSERT_EQ(all[0].libraries.size(), 1U) << "the driver stands apart";
}

}  // namespace
}  // namespace cudiag
