#include "diagnose/knowledge/toolchain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace cudiag {
namespace {

const HeaderOwner& owner(const char* header) {
    const HeaderOwner* found = header_owner(header);
    EXPECT_NE(found, nullptr) << header;
    static const HeaderOwner none;
    return found == nullptr ? none : *found;
}

// "pip install …" of one manager for one header.
std::string command(const char* header, const std::string& manager, const char* cuda,
                    const char* torch = "") {
    for (const Provider& provider : header_providers(owner(header), cuda, torch)) {
        if (provider.manager == manager) {
            return install_command(provider);
        }
    }
    return {};
}

std::string group_command(const std::string& manager, const char* cuda) {
    const HeaderGroup* group =
        header_group("cusparse.h", "/v/torch/include/ATen/cuda/Exceptions.h");
    if (group != nullptr) {
        for (const ProviderSet& set : provider_sets(group->owners, cuda)) {
            if (set.manager == manager) {
                return install_command(set);
            }
        }
    }
    return {};
}

std::string slug(const char* type, const char* message,
                 const std::vector<std::string>& functions = {}) {
    const std::optional<BuildText> text = build_text_of(type, message, functions);
    return text ? text->pattern->slug : "";
}

std::string value(const std::optional<BuildText>& text, const char* key) {
    if (!text) {
        return "no text";
    }
    const auto found = text->values.find(key);
    return found == text->values.end() ? "" : found->second;
}

TEST(HeaderOwner, IsFoundByNameOrByDirectory) {
    EXPECT_EQ(owner("cusparse.h").library, "cusparse");
    EXPECT_EQ(owner("cublas_v2.h").library, "cublas");
    EXPECT_EQ(owner("cusolverDn.h").library, "cusolver");
    EXPECT_EQ(owner("cuda_runtime_api.h").library, "cudart");
    EXPECT_EQ(owner("crt/host_config.h").library, "crt");
    EXPECT_EQ(owner("host_config.h").library, "cudart");
    EXPECT_EQ(owner("thrust/detail/config.h").library, "cccl");
    EXPECT_EQ(owner("cuda/std/type_traits").library, "cccl");
    EXPECT_EQ(owner("nv/target").library, "cccl");
    EXPECT_EQ(owner("nvtx3/nvToolsExt.h").library, "nvtx");
    EXPECT_EQ(owner("nvToolsExt.h").library, "nvToolsExt");
    EXPECT_EQ(owner("Python.h").library, "python");
    EXPECT_EQ(owner("torch/extension.h").library, "torch");
    EXPECT_EQ(owner("nvml.h").library, "nvml");
}

TEST(HeaderOwner, IsNotGuessedAt) {
    for (const char* header : {"", "/", "my_kernel.h", "thrust", "cusparse.hpp", "x/cusparse.h"}) {
        EXPECT_EQ(header_owner(header), nullptr) << header;
    }
    EXPECT_EQ(header_owner_named("no such"), nullptr);
}

TEST(HeaderProviders, NameWhatBelongsToTheCudaRelease) {
    EXPECT_EQ(command("cusparse.h", "pip", "13.0"), "pip install 'nvidia-cusparse==12.6.3.3'");
    EXPECT_EQ(command("cusparse.h", "pip", "12.4"),
              "pip install 'nvidia-cusparse-cu12==12.3.1.170'");
    EXPECT_EQ(command("cusparse.h", "apt", "13.0"), "apt-get install libcusparse-dev-13-0");
    EXPECT_EQ(command("cusparse.h", "conda", "13.0"),
              "conda install -c conda-forge libcusparse-dev cuda-version=13.0");
    EXPECT_EQ(command("cusparse.h", "conda", "11.7"),
              "conda install -c nvidia/label/cuda-11.7.0 libcusparse-dev");
    EXPECT_EQ(command("crt/host_config.h", "pip", "12.8"),
              "pip install 'nvidia-cuda-nvcc-cu12==12.8.93'");
    EXPECT_EQ(command("crt/host_config.h", "pip", "13.0"),
              "pip install 'nvidia-cuda-crt==13.0.88'");
    EXPECT_EQ(command("thrust/complex.h", "pip", "13.5"),  // not 13.5.*: that does not exist
              "pip install 'nvidia-cuda-cccl==13.3.5.0.6'");
    EXPECT_EQ(command("nccl.h", "apt", "12.4"), "apt-get install libnccl-dev");
    const std::vector<Provider> all = header_providers(owner("cusparse.h"), "12.4.131");
    ASSERT_EQ(all.size(), 4U);
    EXPECT_EQ(all[3].package, "nvidia/cuda:12.4.1-devel-ubuntu22.04");
}

TEST(HeaderProviders, TakeTheNewestOfAMajorAndOfAll) {
    EXPECT_EQ(command("cuda.h", "apt", "12"), "apt-get install cuda-cudart-dev-12-9");
    EXPECT_EQ(command("cuda.h", "apt", "12.x"), "apt-get install cuda-cudart-dev-12-9");
    EXPECT_EQ(command("cuda.h", "apt", ""), "apt-get install cuda-cudart-dev-13-0");
}

TEST(HeaderProviders, FollowWhatTorchPins) {
    EXPECT_EQ(command("cublas_v2.h", "pip", "12.8", "2.9.1+cu128"),
              "pip install 'nvidia-cublas-cu12==12.8.4.1'");
    EXPECT_EQ(command("cublas_v2.h", "pip", "12.8"), "pip install 'nvidia-cublas-cu12==12.8.5.5'");
    EXPECT_EQ(command("cublas_v2.h", "pip", "13.0", "2.9.1+cu128"),  // of another CUDA: not torch's
              command("cublas_v2.h", "pip", "13.0"));
}

TEST(HeaderProviders, LeaveOutWheelsOfAReleaseThatHasNone) {
    EXPECT_EQ(command("cusparse.h", "pip", "11.3"), "");
    EXPECT_EQ(command("cusparse.h", "pip", "12.7"), "");
    EXPECT_EQ(command("nvToolsExt.h", "pip", "12.9"), "");
    EXPECT_EQ(command("nvToolsExt.h", "pip", "13.0"), "");
    EXPECT_EQ(command("Python.h", "pip", "13.0"), "");
    EXPECT_EQ(command("Python.h", "apt", "13.0"), "apt-get install python3-dev");
}

TEST(HeaderProviders, AreNoneWhereTheReleaseDoesNotHaveIt) {
    EXPECT_TRUE(header_providers(owner("nvToolsExt.h"), "13.0").empty());
    EXPECT_FALSE(header_providers(owner("nvToolsExt.h"), "12.8").empty());
    EXPECT_TRUE(header_providers(owner("nvJitLink.h"), "11.8").empty());
    EXPECT_FALSE(header_providers(owner("nvJitLink.h"), "12.0").empty());
}

TEST(HeaderProviders, AreCompleteForEveryOwner) {
    std::set<std::string> names;
    for (const HeaderOwner* each : all_header_owners()) {
        SCOPED_TRACE(each->library);
        EXPECT_TRUE(names.insert(each->library).second);
        EXPECT_FALSE(each->source.empty());
        for (const char* cuda : {"11.8", "12.4", "13.0"}) {
            for (const Provider& provider : header_providers(*each, cuda)) {
                EXPECT_EQ((provider.package + provider.spec + provider.channel).find('{'),
                          std::string::npos)
                    << provider.package;
                EXPECT_EQ(provider.channel.empty(), provider.manager != "conda");
            }
        }
        for (const HeaderWheel& wheel : each->wheels) {
            EXPECT_NE(wheel.source.find(wheel.package), std::string::npos);
        }
    }
    EXPECT_GE(names.size(), 35U);
}

TEST(HeaderWheel, SaysWhereTheHeadersLie) {
    const HeaderWheel* wheel = header_wheel(owner("cusparse.h"), "12.4");
    ASSERT_NE(wheel, nullptr);
    EXPECT_EQ(wheel->include_directory, "nvidia/cusparse/include");
    wheel = header_wheel(owner("thrust/complex.h"), "13");
    ASSERT_NE(wheel, nullptr);
    EXPECT_EQ(wheel->include_directory, "nvidia/cu13/include/cccl");
    EXPECT_EQ(header_wheel(owner("Python.h"), "13"), nullptr);
}

TEST(HeaderGroup, NamesAllThatTorchNeedsInOneCommand) {
    EXPECT_EQ(group_command("apt", "13.0"),
              "apt-get install cuda-cudart-dev-13-0 cuda-nvcc-13-0 libcublas-dev-13-0 "
              "libcusparse-dev-13-0 libcusolver-dev-13-0 cuda-cccl-13-0");
    EXPECT_EQ(group_command("conda", "12.8"),
              "conda install -c conda-forge cuda-cudart-dev cuda-nvcc libcublas-dev "
              "libcusparse-dev libcusolver-dev cuda-cccl cuda-version=12.8");
    EXPECT_EQ(group_command("pip", "13.0"),
              "pip install 'nvidia-cuda-runtime==13.0.96' 'nvidia-cuda-crt==13.0.88' "
              "'nvidia-cublas==13.1.1.3' 'nvidia-cusparse==12.6.3.3' 'nvidia-cusolver==12.0.4.66' "
              "'nvidia-cuda-cccl==13.0.85'");
    EXPECT_EQ(group_command("image", "13.0"), "");
    EXPECT_EQ(group_command("pip", "11.3"), "");  // not half of them
}

TEST(HeaderGroup, IsOnlyThatOfItsIncluder) {
    EXPECT_NE(header_group("cusparse.h", "ATen/cuda/CUDAContextLight.h"), nullptr);
    EXPECT_EQ(header_group("cusparse.h", "/src/mine.cu"), nullptr);
    EXPECT_EQ(header_group("cusparse.h", "/src/myATen/cuda/mine.cu"), nullptr);
    EXPECT_EQ(header_group("Python.h", "/v/torch/csrc/python_headers.h"), nullptr);
    EXPECT_EQ(header_group("", ""), nullptr);
    ASSERT_FALSE(all_header_groups().empty());
}

TEST(ProviderSets, AreNoneOfNothing) {
    EXPECT_TRUE(provider_sets({}, "13.0").empty());
    EXPECT_EQ(install_command(ProviderSet{}), "");
    EXPECT_EQ(install_command(ProviderSet{"image", {Provider{}}}), "");
}

TEST(ProviderSets, UseTheGivenPython) {
    const auto sets = provider_sets({header_owner("curand.h")}, "13.0");
    ASSERT_FALSE(sets.empty());
    EXPECT_EQ(install_command(sets.front(), "/v/bin/python"),
              "/v/bin/python -m pip install 'nvidia-curand==10.4.0.35'");
}

TEST(Linkable, NamesItsOwnerAndTheFileOfItsWheel) {
    const Linkable* cudart = linkable("cudart");
    ASSERT_NE(cudart, nullptr);
    EXPECT_EQ(cudart->file, "libcudart.so");
    EXPECT_EQ(cudart->owner->library, "cudart");
    EXPECT_EQ(wheel_library(*cudart, "13.0"), "nvidia/cu13/lib/libcudart.so.13");
    EXPECT_EQ(wheel_library(*cudart, "11.8"), "nvidia/cuda_runtime/lib/libcudart.so.11.0");
    EXPECT_EQ(linkable("libcudart.so"), cudart);
    ASSERT_NE(linkable("cublas"), nullptr);  // and not libcublasLt.so.12
    EXPECT_EQ(wheel_library(*linkable("cublas"), "12.4"), "nvidia/cublas/lib/libcublas.so.12");
    ASSERT_NE(linkable("cudart_static"), nullptr);
    EXPECT_EQ(wheel_library(*linkable("cudart_static"), "12.4"),
              "nvidia/cuda_runtime/lib/libcudart_static.a");
    EXPECT_EQ(wheel_library(*linkable("cudart_static"), "11.8"), "");
}

TEST(Linkable, TellsStubsApart) {
    ASSERT_NE(linkable("cuda"), nullptr);
    EXPECT_TRUE(linkable("cuda")->stub);
    EXPECT_EQ(wheel_library(*linkable("cuda"), "13.0"), "");
    ASSERT_NE(linkable("nvidia-ml"), nullptr);
    EXPECT_TRUE(linkable("nvidia-ml")->stub);
    EXPECT_FALSE(linkable("curand")->stub);
}

TEST(Linkable, KnowsOthersThanCudaAndGuessesAtNone) {
    ASSERT_NE(linkable("aio"), nullptr);
    ASSERT_NE(linkable("python3.11"), nullptr);
    EXPECT_EQ(linkable("libpython3.11.so"), linkable("python3.11"));
    for (const char* name : {"", "lib", "lib.so", "libcudart.a", "libcudart.so.13", "mine"}) {
        EXPECT_EQ(linkable(name), nullptr) << name;
    }
}

TEST(ToolkitRelease, KnowsWhatNvccRefuses) {
    const ToolkitRelease* old = toolkit_release("11.8.89");
    ASSERT_NE(old, nullptr);
    EXPECT_EQ(old->gcc_newest, 11);
    EXPECT_EQ(old->clang_newest, 14);
    EXPECT_EQ(old->newest_standard, "c++17");
    const ToolkitRelease* recent = toolkit_release("V13.0.88");
    ASSERT_NE(recent, nullptr);
    EXPECT_EQ(recent->gcc_newest, 15);
    EXPECT_EQ(recent->clang_newest, 20);
    EXPECT_EQ(recent->newest_standard, "c++20");
    EXPECT_TRUE(recent->checked);
    EXPECT_EQ(toolkit_release("12.7"), nullptr);  // there is none
    EXPECT_EQ(toolkit_release(""), nullptr);
    EXPECT_EQ(toolkit_release("13"), nullptr);
}

TEST(ToolkitRelease, IsKnownForEveryTorch) {
    for (const TorchRelease* torch : all_torch_releases()) {
        EXPECT_NE(toolkit_release(torch->cuda), nullptr) << torch->version << " " << torch->cuda;
    }
    ASSERT_GE(all_toolkit_releases().size(), 22U);
    EXPECT_EQ(all_toolkit_releases().front()->release, "11.0");
}

TEST(Architecture, IsReadInAllItsForms) {
    for (const char* text : {"compute_70", "sm_70", "lto_70", "7.0", "70", "7.0+PTX"}) {
        EXPECT_EQ(architecture_name(text), "70") << text;
    }
    EXPECT_EQ(architecture_name("sm_90a"), "90a");
    EXPECT_EQ(architecture_name("10.0f"), "100f");
    EXPECT_EQ(architecture_name("12.1"), "121");
    for (const char* text : {"", "Ampere", "native", "compute_", "7", "a", "9.0b", "90aa", "9..0",
                             ".90", "90.", "sm_90 ", "-90"}) {
        EXPECT_EQ(architecture_name(text), "") << text;
    }
}

TEST(Architecture, IsCompiledForOrNot) {
    const ToolkitRelease& nvcc = *toolkit_release("13.0");
    EXPECT_EQ(compiles_for(nvcc, "compute_70"), false);
    EXPECT_EQ(compiles_for(nvcc, "9.0a"), true);
    EXPECT_EQ(compiles_for(*toolkit_release("12.8"), "compute_70"), true);
    EXPECT_EQ(compiles_for(*toolkit_release("12.6"), "10.0"), false);
    EXPECT_EQ(compiles_for(nvcc, "Hopper"), std::nullopt);
}

TEST(BadPairs, FitByBothReleases) {
    ASSERT_EQ(bad_pairs("nvcc", "11.5.119", "gcc", "11.4.0").size(), 1U);
    EXPECT_EQ(bad_pairs("nvcc", "11.5", "gcc", "11").front()->header, "bits/std_function.h");
    EXPECT_TRUE(bad_pairs("nvcc", "11.7", "gcc", "11.4.0").empty());
    EXPECT_TRUE(bad_pairs("nvcc", "11.5", "gcc", "10.5.0").empty());
    EXPECT_TRUE(bad_pairs("nvcc", "11.5", "gcc", "12.1").empty());
    EXPECT_EQ(bad_pairs("nvcc", "12.9", "glibc", "2.41").size(), 1U);
    EXPECT_EQ(bad_pairs("nvcc", "12.9", "glibc", "2.42").size(), 2U);
    EXPECT_EQ(bad_pairs("nvcc", "13.1", "glibc", "2.42").size(), 1U);
    EXPECT_TRUE(bad_pairs("nvcc", "13.0", "glibc", "2.41").empty());
    EXPECT_TRUE(bad_pairs("nvcc", "13.2", "glibc", "2.42").empty());
    EXPECT_TRUE(bad_pairs("nvcc", "12.9", "glibc", "2.36").empty());
    EXPECT_TRUE(bad_pairs("nvcc", "", "glibc", "2.42").empty());
    EXPECT_TRUE(bad_pairs("nvcc", "12.9", "glibc", "").empty());
    EXPECT_EQ(all_bad_pairs().size(), 3U);
}

TEST(BuildTexts, TellWhatTorchAndDeepspeedSay) {
    EXPECT_EQ(slug("OSError", "CUDA_HOME environment variable is not set. Please set it."),
              "build-missing-compiler");
    EXPECT_EQ(value(build_text_of("RuntimeError",
                                  "Unable to JIT load the fused_adam op due to "
                                  "ninja not being installed."),
                    "program"),
              "ninja");
    const auto formatted = build_text_of(
        "RuntimeError",
        "\nThe detected CUDA version (11.8) mismatches the version that was used to compile\n"
        "PyTorch (12.1). Please make sure to use the same CUDA versions.\n");
    EXPECT_EQ(value(formatted, "nvcc_release"), "11.8");
    EXPECT_EQ(value(formatted, "torch_cuda"), "12.1");
    const auto tuple = build_text_of(
        "RuntimeError",
        "('The detected CUDA version (%s) mismatches the version that was used to compilePyTorch "
        "(%s). Please make sure to use the same CUDA versions.', '13.0', '12.8')");
    EXPECT_EQ(value(tuple, "nvcc_release"), "13.0");
    EXPECT_EQ(value(tuple, "torch_cuda"), "12.8");
    const auto deepspeed = build_text_of(
        "op_builder.builder.CUDAMismatchException",
        ">- DeepSpeed Op Builder: Installed CUDA version 11.8 does not match the version torch was "
        "compiled with 13.0, unable to compile cuda/cpp extensions");
    EXPECT_EQ(value(deepspeed, "torch_cuda"), "13.0");
}

TEST(BuildTexts, AskForTheFrameWhereTheTextAloneIsNothing) {
    EXPECT_EQ(slug("IndexError", "list index out of range", {"load", "_get_cuda_arch_flags"}),
              "build-unsupported-arch");
    EXPECT_EQ(slug("IndexError", "list index out of range", {"main"}), "");
    EXPECT_EQ(slug("ValueError", "list index out of range", {"_get_cuda_arch_flags"}), "");
    EXPECT_EQ(slug("RuntimeError", "Killed", {"main"}), "");
}

TEST(BuildTexts, FindTheFirstErrorInTheWholeOutputOfNinja) {
    const std::string message =
        "Error building extension 'mini': [1/2] /usr/bin/nvcc -I/usr/include " +
        std::string(3000, 'x') +
        " -c /s/mini.cu\nFAILED: [code=1] mini.cuda.o\n"
        "sh: /opt/conda/lib/libtinfo.so.6: no version information available (required by sh)\n"
        "/v/torch/include/ATen/cuda/CUDAContextLight.h:10:10: fatal error: cusparse.h: No such "
        "file or directory\n   10 | #include <cusparse.h>\ncompilation terminated.\n"
        "/usr/bin/ld: cannot find -lcudart: No such file or directory\n";
    const std::vector<BuildText> all = build_texts_of("RuntimeError", message);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].pattern->slug, "build-missing-header");
    EXPECT_EQ(all[0].values.at("header"), "cusparse.h");
    EXPECT_EQ(all[0].values.at("included_by"), "/v/torch/include/ATen/cuda/CUDAContextLight.h:10");
    EXPECT_EQ(message.compare(all[0].offset, 3, "/v/"), 0);
    EXPECT_EQ(all[1].values.at("library"), "cudart");
}

TEST(BuildTexts, TellAMissingHeaderFromAMissingSource) {
    const auto forced = build_text_of(
        "RuntimeError", "cc1plus: fatal error: cuda_runtime.h: No such file or directory");
    EXPECT_EQ(value(forced, "header"), "cuda_runtime.h");
    EXPECT_EQ(value(forced, "included_by"), "cc1plus");
    EXPECT_EQ(slug("RuntimeError", "cc1plus: fatal error: /s/a.cpp: No such file or directory"),
              "");
}

TEST(BuildTexts, KnowWhichModulesAreExtensions) {
    const auto text = build_text_of("ModuleNotFoundError", "No module named 'amp_C'");
    EXPECT_EQ(value(text, "package"), "apex");
    EXPECT_EQ(text->pattern->slug, "package-without-extension");
    EXPECT_EQ(slug("ModuleNotFoundError", "No module named 'numpy'"), "");
    EXPECT_EQ(package_of_extension("fused_layer_norm_cuda"), "apex");
    EXPECT_EQ(package_of_extension("numpy"), "");
}

TEST(BuildTexts, AreSilentOnEverythingElse) {
    EXPECT_EQ(slug("RuntimeError", ""), "");
    EXPECT_EQ(slug("RuntimeError", "CUDA error: out of memory"), "");
    EXPECT_EQ(slug("", "\n\n\r\n"), "");
    EXPECT_EQ(slug("FileNotFoundError", "[Errno 2] No such file or directory: '/data/train.bin'"),
              "");
}

TEST(BuildTexts, SurviveAnEndlessLine) {
    const std::string line(2000000, 'a');
    EXPECT_EQ(slug("RuntimeError", ("fatal error: " + line + " Unknown CUDA arch (").c_str()), "");
    EXPECT_EQ(slug("RuntimeError", (line + "\nvirtual memory exhausted\n" + line).c_str()),
              "build-out-of-memory");
}

TEST(BuildTexts, NameTheirSources) {
    ASSERT_GE(all_build_texts().size(), 40U);
    for (const BuildTextPattern* each : all_build_texts()) {
        EXPECT_FALSE(each->source.empty()) << each->name;
        EXPECT_FALSE(each->meaning.empty()) << each->name;
    }
}

}  // namespace
}  // namespace cudiag
