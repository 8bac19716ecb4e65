#include "diagnose/build/toolkit.h"

#include "tests/unit/diagnose/build/facts.h"

namespace cudiag {
namespace {

std::vector<std::string> homes_of(const std::vector<Toolkit>& toolkits, const ElfWorld& world) {
    std::vector<std::string> homes;
    for (const Toolkit& toolkit : toolkits) {
        if (toolkit.home.rfind(world.path(), 0) == 0) {  // the machine may have others
            homes.push_back(toolkit.home);
        }
    }
    return homes;
}

TEST(Toolkit, IsToldByItsNvccBeforeItsHeaders) {
    const ElfWorld world;
    world.program("cuda/bin/nvcc",
                  {.needs = {},
                   .runpath = "",
                   .soname = "",
                   .source = "const char text[] = \"Cuda compilation tools, release 12.4, "
                             "V12.4.131\"; int main(void) { return text[0]; }",
                   .flags = "-O0"});
    world.text("cuda/include/cuda.h", "#define CUDA_VERSION 11080\n");
    const Toolkit toolkit = toolkit_at(world.path("cuda"));
    EXPECT_EQ(toolkit.release, "12.4");
    EXPECT_EQ(toolkit.nvcc, world.path("cuda/bin/nvcc"));
    EXPECT_EQ(toolkit.told_by, toolkit.nvcc);
}

TEST(Toolkit, OfHeadersAloneHasNoNvcc) {
    const ElfWorld world;
    world.text("cuda/include/cuda.h", "/* x */\n#define CUDA_VERSION 12080\n");
    world.text("cuda/bin/nvcc", "cannot be run");
    const Toolkit toolkit = toolkit_at(world.path("cuda"));
    EXPECT_EQ(toolkit.release, "12.8");
    EXPECT_EQ(toolkit.nvcc, "");
    EXPECT_EQ(toolkit.told_by, world.path("cuda/include/cuda.h"));
}

TEST(Toolkit, ThatIsNotThereHasNoRelease) {
    const ElfWorld world;
    const Toolkit toolkit = toolkit_at(world.path("gone"));
    EXPECT_EQ(toolkit.home, world.path("gone"));
    EXPECT_EQ(toolkit.release, "");
    EXPECT_EQ(toolkit.told_by, "");
}

TEST(Toolkit, IsFoundBehindALinkToItsNvcc) {
    const ElfWorld world;
    const std::string nvcc = testing::toolkit(world, "13.0");
    const std::string link = world.link("usr/bin/nvcc", nvcc);
    EXPECT_EQ(toolkit_of_nvcc(link).home, world.path("cuda"));
    EXPECT_EQ(toolkit_of_nvcc(link).release, "13.0");
    EXPECT_EQ(toolkit_of_nvcc(nvcc).home, world.path("cuda"));
}

TEST(ReleaseOfHeaders, IsNoneWhereNoHeaderTells) {
    const ElfWorld world;
    EXPECT_EQ(release_of_headers(world.path("gone")), "");
    world.text("include/cuda.h", "#define CUDA_VERSION none\n#define CUDA_VERSION 99\n");
    EXPECT_EQ(release_of_headers(world.path("include")), "");
}

TEST(ToolkitsNear, AreEachThereOnceTheNewestFirst) {
    const ElfWorld world;
    testing::toolkit(world, "11.8", "old");
    testing::toolkit(world, "12.8", "conda");
    testing::toolkit(world, "13.0", "site/nvidia/cu13");
    world.link("current", "old");
    world.text("headers/include/cuda.h", "#define CUDA_VERSION 13010\n");
    const auto toolkits = toolkits_near(
        world.path("old/bin") + ":" + world.path("current/bin") + ":" + world.path("headers/bin"),
        {world.path("site")}, world.path("conda"));
    EXPECT_EQ(homes_of(toolkits, world),
              (std::vector<std::string>{world.path("site/nvidia/cu13"), world.path("conda"),
                                        world.path("old")}));
}

}  // namespace
}  // namespace cudiag
