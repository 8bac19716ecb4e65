#include "diagnose/doctor/build_tools.h"

#include <gtest/gtest.h>

#include "diagnose/doctor/torch_install.h"
#include "tests/unit/diagnose/loader/elf_world.h"

namespace cudiag {
namespace {

// As nvcc 13.0.88 prints it, with long lines cut.
constexpr const char* kPlan = R"(#$ _NVVM_BRANCH_=nvvm
#$ _SPACE_= 
#$ TOP=/opt/cuda/bin/..
#$ CICC_PATH=/opt/cuda/bin/../nvvm/bin
#$ PATH=/opt/cuda/bin/../nvvm/bin:/opt/cuda/bin:/usr/bin
#$ INCLUDES="-I/opt/cuda/bin/../targets/x86_64-linux/include"  
#$ gcc -std=c++20 -D__CUDA_ARCH_LIST__=900 -E -x c++ -isystem "/venv/a b/include" "-I/opt/cuda/include" "/dev/null"
#$ cudafe++ --c++20 --gnu_version=120200 --display_error_number --orig_src_file_name "/dev/null"
#$ "$CICC_PATH/cicc" --c++20 --gnu_version=120200 -arch compute_90
#$ ptxas -arch=sm_90 -m64  "/tmp/x.ptx"  -o "/tmp/x.cubin" 
#$ fatbinary -64 --cicc-cmdline="-ftz=0 "
#$ rm /tmp/x.fatbin
#$ gcc -std=c++20 -c -x c++ "/tmp/x.cudafe1.cpp" -o "/dev/null.o" 
)";

TEST(NvccPlan, TellsTheHostCompilerAndItsTools) {
    const NvccPlan plan = read_nvcc_plan(kPlan);
    ASSERT_GE(plan.host.size(), 8U);
    EXPECT_EQ(plan.host.front(), "gcc");
    EXPECT_NE(std::find(plan.host.begin(), plan.host.end(), "/venv/a b/include"), plan.host.end());
    EXPECT_EQ(plan.compiler.kind, "gcc");
    EXPECT_EQ(plan.compiler.release, "12.2.0");
    EXPECT_EQ(plan.compiler.major, 12);
    EXPECT_EQ(plan.tools, (std::vector<std::string>{"cudafe++", "cicc", "ptxas", "fatbinary"}));
    EXPECT_EQ(plan.cicc_directory, "/opt/cuda/bin/../nvvm/bin");
    EXPECT_EQ(plan.path, "/opt/cuda/bin/../nvvm/bin:/opt/cuda/bin:/usr/bin");
    EXPECT_TRUE(plan.complaint.empty());
}

TEST(NvccPlan, KeepsWhatWentBeforeARefusal) {
    const NvccPlan plan = read_nvcc_plan(
        "gcc: No such file or directory\nnvcc fatal   : Failed to preprocess host compiler "
        "properties.\n");
    EXPECT_EQ(plan.complaint,
              "gcc: No such file or directory; nvcc fatal   : Failed to preprocess host compiler "
              "properties.");
    EXPECT_TRUE(plan.host.empty());
    EXPECT_TRUE(read_nvcc_plan("").host.empty());
}

TEST(IncludeDirectories, AreThoseBetweenTheTwoLines) {
    EXPECT_EQ(include_directories_in(
                  "gcc version 12\n#include \"...\" search starts here:\n /no\n"
                  "#include <...> search starts here:\n /a\n /b c\nEnd of search list.\n /d\n"),
              (std::vector<std::string>{"/a", "/b c"}));
    EXPECT_TRUE(include_directories_in("clang: error").empty());
}

TEST(CudaHome, IsWhatTorchTakesItFor) {
    const ElfWorld world;
    std::filesystem::permissions(world.text("tools/bin/nvcc", "#!/bin/sh\n"),
                                 std::filesystem::perms::owner_all);
    const Variables path{{"PATH", world.path("tools/bin")}};
    EXPECT_EQ(cuda_home_of(path).home, world.path("tools"));
    EXPECT_EQ(cuda_home_of(path).rule, "nvcc in PATH");
    Variables both = path;
    both["CUDA_PATH"] = "/b";
    EXPECT_EQ(cuda_home_of(both).home, "/b");
    both["CUDA_HOME"] = "/a";
    EXPECT_EQ(cuda_home_of(both).rule, "CUDA_HOME");
    both["CUDA_HOME"] = "";
    EXPECT_EQ(cuda_home_of(both).home, "/b");
}

TEST(Architectures, AreExpandedAsTorchExpandsThem) {
    TorchInstall torch;
    torch.named_architectures = {{"Ampere", "8.0;8.6+PTX"}, {"Ampere+Tegra", "8.7"}};
    EXPECT_EQ(architectures_of_list(torch, "9.0 Ampere"),
              (std::vector<std::string>{"9.0", "8.0", "8.6+PTX"}));
    EXPECT_EQ(architectures_of_list(torch, "Ampere+Tegra"), (std::vector<std::string>{"8.7"}));
    EXPECT_EQ(architectures_of_list(torch, "9.0;"), (std::vector<std::string>{"9.0", ""}));
    EXPECT_EQ(architecture_flags(torch, {{"TORCH_CUDA_ARCH_LIST", "8.6+PTX"}}),
              (std::vector<std::string>{"-gencode=arch=compute_86,code=sm_86",
                                        "-gencode=arch=compute_86,code=compute_86"}));
    EXPECT_TRUE(architecture_flags(torch, {}).empty());
}

TEST(TorchInstall, IsReadFromItsOwnFiles) {
    const ElfWorld world;
    world.text("site/torch/__init__.py", R"(
def _preload_cuda_deps(err=None):
    cuda_libs: list[tuple[str, str]] = [
        ("cublas", "libcublasLt.so.*[0-9]"),
        ("nccl", "libnccl.so.*[0-9]"),
    ]

def _load_global_deps() -> None:
    try:
        try:
            _preload_cuda_deps()
        except Exception:
            pass
)");
    world.text("site/torch/version.py",
               "__version__ = '2.13.0+cu130'\ndebug = False\ncuda: Optional[str] = '13.0'\n"
               "hip: Optional[str] = None\n");
    world.text("site/torch/utils/cpp_extension.py", R"(
CUDA_GCC_VERSIONS: VersionMap = {
    '11.1': (MINIMUM_GCC_VERSION, (11, 0)),
    '12.0': ((6, 0, 0), (13, 0)),
}

    named_arches = collections.OrderedDict([
        ('Hopper', '9.0+PTX'),
    ])
    supported_arches = ['8.0', '9.0',
                        '9.0a']
        cflags = common_cflags + ['-fPIC', '-std=c++20'] + extra_cflags
)");
    world.text("site/torch/_C.cpython-311-x86_64-linux-gnu.so", "");
    world.text("site/typing_extensions.py", "");
    world.text("site/nvidia/cu13/lib/libcublasLt.so.13", "");
    PythonEnvironment python;
    python.path = "/venv/bin/python";
    python.packages = {world.path("empty"), world.path("site")};
    python.extension_suffixes = {".cpython-311-x86_64-linux-gnu.so", ".so"};
    const TorchInstall torch = torch_install(python);
    EXPECT_EQ(torch.directory, world.path("site/torch"));
    EXPECT_EQ(torch.version, "2.13.0+cu130");
    EXPECT_EQ(torch.cuda, "13.0");
    EXPECT_EQ(torch.hip, "");
    EXPECT_EQ(torch.standard, "c++20");
    EXPECT_EQ(torch.architectures, (std::vector<std::string>{"8.0", "9.0", "9.0a"}));
    EXPECT_EQ(torch.named_architectures.at("Hopper"), "9.0+PTX");
    EXPECT_EQ(torch.gcc_refused_from.at("11.1"), 11);
    EXPECT_EQ(torch.gcc_refused_from.at("12.0"), 13);
    EXPECT_TRUE(torch.extension.ends_with("_C.cpython-311-x86_64-linux-gnu.so"));
    EXPECT_TRUE(torch.missing_modules.empty());
    EXPECT_EQ(torch.preloads,
              (std::vector<std::string>{world.path("site/nvidia/cu13/lib/libcublasLt.so.13")}))
        << "it stops at the first that is not there";
    python.extension_suffixes = {".cpython-312-x86_64-linux-gnu.so"};
    EXPECT_TRUE(torch_install(python).extension.empty());
    EXPECT_FALSE(torch_install(python).extension_of_another_python.empty());
    world.remove("site/torch");
    EXPECT_FALSE(torch_install(python).found());
}

}  // namespace
}  // namespace cudiag
