#include "diagnose/knowledge/knowledge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

namespace cudiag {
namespace {

const LibraryRelease& known(const char* soname) {
    const LibraryRelease* release = library_release(soname);
    EXPECT_NE(release, nullptr) << soname;
    static const LibraryRelease none;
    return release == nullptr ? none : *release;
}

const Provider* provider(const LibraryRelease& release, const std::string& manager,
                         int cuda_major = 0) {
    for (const Provider& candidate : release.providers) {
        if (candidate.manager == manager &&
            (cuda_major == 0 || candidate.cuda_major == cuda_major)) {
            return &candidate;
        }
    }
    return nullptr;
}

TEST(Knowledge, AllDataFilesCompiledInAreWellFormed) {
    EXPECT_EQ(knowledge_problems(), std::vector<std::string>{});
}

TEST(Knowledge, EveryReleaseIsCompleteAndNamesItsSource) {
    ASSERT_GE(all_library_releases().size(), 150U);
    for (const LibraryRelease* release : all_library_releases()) {
        SCOPED_TRACE(release->soname);
        EXPECT_FALSE(release->library.empty());
        EXPECT_FALSE(release->description.empty());
        EXPECT_FALSE(release->source.empty());
        EXPECT_FALSE(release->providers.empty());
        EXPECT_EQ(library_family(release->soname), release->library);
        EXPECT_NE(release->soname.find(".so"), std::string::npos);
        if (release->driver) {
            EXPECT_EQ(release->cuda_major, 0);
            EXPECT_TRUE(release->pip_directories.empty());
        } else {
            EXPECT_FALSE(release->cuda_majors.empty());
        }
    }
}

TEST(Knowledge, EveryProviderNamesSomethingThatCanBeInstalledAsItStands) {
    const std::set<std::string> managers{"pip", "conda", "apt", "image", "host"};
    for (const LibraryRelease* release : all_library_releases()) {
        for (const Provider& each : release->providers) {
            SCOPED_TRACE(release->soname + " by " + each.manager + " " + each.package);
            EXPECT_EQ(managers.count(each.manager), 1U);
            EXPECT_FALSE(each.package.empty());
            EXPECT_EQ((each.package + each.spec).find_first_of("{}"), std::string::npos);
            EXPECT_EQ(each.channel.empty(), each.manager != "conda");
            EXPECT_EQ(each.checked, each.manager == "pip");  // only PyPI could be looked into
        }
    }
}

TEST(Knowledge, NoWheelOrImageIsSaidToBringTheDriver) {
    int drivers = 0;
    for (const LibraryRelease* release : all_library_releases()) {
        if (!release->driver) {
            continue;
        }
        ++drivers;
        EXPECT_EQ(provider(*release, "pip"), nullptr) << release->soname;
        EXPECT_EQ(provider(*release, "conda"), nullptr) << release->soname;
        EXPECT_EQ(provider(*release, "image"), nullptr) << release->soname;
        ASSERT_NE(provider(*release, "host"), nullptr) << release->soname;
        for (const Provider& each : release->providers) {
            EXPECT_FALSE(each.note.empty()) << release->soname;
        }
    }
    EXPECT_GE(drivers, 6);
    EXPECT_TRUE(known("libcuda.so.1").driver);
    EXPECT_TRUE(known("libnvidia-ml.so.1").driver);
}

TEST(Knowledge, EachCudaMajorHasItsOwnRuntime) {
    EXPECT_EQ(known("libcudart.so.11.0").cuda_major, 11);
    EXPECT_EQ(known("libcudart.so.12").cuda_major, 12);
    EXPECT_EQ(known("libcudart.so.13").cuda_major, 13);
    EXPECT_EQ(known("libcudart.so.12").providers.front().directory, "nvidia/cuda_runtime/lib");
    EXPECT_EQ(known("libcudart.so.13").providers.front().directory, "nvidia/cu13/lib");
}

TEST(Knowledge, ASonameOfTwoCudaMajorsIsAscribedToNeither) {
    const LibraryRelease& cusparse = known("libcusparse.so.12");
    EXPECT_EQ(cusparse.cuda_major, 0);
    EXPECT_EQ(cusparse.cuda_majors, (std::vector<int>{12, 13}));
    EXPECT_EQ(cusparse.pip_directories,
              (std::vector<std::string>{"nvidia/cusparse/lib", "nvidia/cu13/lib"}));
    ASSERT_NE(provider(cusparse, "pip", 12), nullptr);
    EXPECT_EQ(provider(cusparse, "pip", 12)->package, "nvidia-cusparse-cu12");
    ASSERT_NE(provider(cusparse, "pip", 13), nullptr);
    EXPECT_EQ(provider(cusparse, "pip", 13)->package, "nvidia-cusparse");
}

TEST(Knowledge, AnUnsuffixedWheelIsNeverOfferedWithoutItsMajor) {
    for (const LibraryRelease* release : all_library_releases()) {
        for (const Provider& each : release->providers) {
            const bool suffixed = std::regex_search(each.package, std::regex{"-cu1[1-3]$"});
            if (each.manager == "pip" && !suffixed) {
                EXPECT_NE(each.spec.find("=="), std::string::npos) << each.package;
            }
        }
    }
}

TEST(Knowledge, AnUnknownNameIsNotGuessedAt) {
    EXPECT_EQ(library_release("libcudart.so.99"), nullptr);
    EXPECT_EQ(library_release("libcudart.so"), nullptr);
    EXPECT_EQ(library_release(""), nullptr);
    EXPECT_TRUE(relatives("libc.so.6").empty());
}

TEST(Knowledge, RelativesAreTheSameLibraryOfOtherReleases) {
    std::vector<std::string> names;
    for (const LibraryRelease* release : relatives("libcudart.so.12")) {
        names.push_back(release->soname);
    }
    EXPECT_EQ(names, (std::vector<std::string>{"libcudart.so.11.0", "libcudart.so.12",
                                               "libcudart.so.13"}));
    EXPECT_EQ(relatives("libcudart.so.99").size(), 3U);  // the family is known, this release is not
}

TEST(LibraryFamily, IsReadFromTheWholeNameBeforeSo) {
    EXPECT_EQ(library_family("libcudart.so.12.4.127"), "cudart");
    EXPECT_EQ(library_family("libcudart.so"), "cudart");
    EXPECT_EQ(library_family("/a/b/libcublasLt.so.12"), "cublasLt");
    EXPECT_EQ(library_family("libnvrtc-builtins.so.12.4"), "nvrtc-builtins");
    EXPECT_EQ(library_family("libcudart_static.a"), "");
    EXPECT_EQ(library_family("libcudart.sol"), "");
    EXPECT_EQ(library_family("libc.so.6"), "");
    EXPECT_EQ(library_family(""), "");
}

TEST(ProvidersFor, LeavesOutThoseOfOtherCudaMajors) {
    const LibraryRelease& curand = known("libcurand.so.10");
    for (const Provider& each : providers_for(curand, 12)) {
        EXPECT_TRUE(each.cuda_major == 12 || each.cuda_major == 0) << each.package;
    }
    EXPECT_LT(providers_for(curand, 12).size(), providers_for(curand, 0).size());
    EXPECT_TRUE(providers_for(curand, 10).empty());
}

TEST(ForCuda, FillsInTheReleaseWhereTheNameHasOne) {
    const LibraryRelease& cudart = known("libcudart.so.12");
    EXPECT_EQ(for_cuda(*provider(cudart, "apt"), "12.4").package, "cuda-cudart-12-4");
    EXPECT_EQ(for_cuda(*provider(cudart, "pip"), "12.4").spec, "==12.4.*");
    EXPECT_EQ(for_cuda(*provider(cudart, "conda"), "12.4").spec, " cuda-version=12.4");
    EXPECT_EQ(for_cuda(*provider(cudart, "image"), "12.4").package,
              "nvidia/cuda:12.4.1-base-ubuntu22.04");
}

TEST(ForCuda, KeepsTheDefaultForWhatDoesNotFit) {
    const LibraryRelease& cudart = known("libcudart.so.12");
    const Provider& apt = *provider(cudart, "apt");
    EXPECT_EQ(for_cuda(apt, "13.0").package, apt.package);  // another major
    EXPECT_EQ(for_cuda(apt, "12").package, apt.package);
    EXPECT_EQ(for_cuda(apt, "12.").package, apt.package);
    EXPECT_EQ(for_cuda(apt, "12.4; rm -r /").package, apt.package);
    EXPECT_EQ(for_cuda(*provider(cudart, "image"), "12.77").package,
              provider(cudart, "image")->package);
}

TEST(InstallCommand, QuotesWhatAShellWouldExpand) {
    const LibraryRelease& cudart = known("libcudart.so.13");
    EXPECT_EQ(install_command(*provider(cudart, "pip")), "pip install 'nvidia-cuda-runtime==13.*'");
    EXPECT_EQ(install_command(*provider(cudart, "pip"), "/v/bin/python"),
              "/v/bin/python -m pip install 'nvidia-cuda-runtime==13.*'");
    EXPECT_EQ(install_command(*provider(cudart, "conda")),
              "conda install -c conda-forge cuda-cudart cuda-version=13.0");
    EXPECT_EQ(install_command(*provider(cudart, "apt")), "apt-get install cuda-cudart-13-0");
    EXPECT_EQ(install_command(*provider(cudart, "image")), "");
}

TEST(TorchRelease, KnowsTheCudaOfEachWheelFrom1_13To2_15) {
    EXPECT_EQ(all_torch_releases().size(), 17U);
    ASSERT_NE(torch_release("2.13.0+cu130"), nullptr);
    EXPECT_EQ(torch_release("2.13.0+cu130")->cuda, "13.0");
    EXPECT_EQ(torch_release("2.9.1")->cuda, "12.8");
    EXPECT_EQ(torch_release("1.13")->cuda, "11.7");
    EXPECT_EQ(torch_release("2.15.0")->cuda, "13.2");
    EXPECT_EQ(torch_release("2.1.2")->version, "2.1");  // and not 2.10 … 2.15
    EXPECT_EQ(torch_release("1.4.0"), nullptr);
    EXPECT_EQ(torch_release(""), nullptr);
}

TEST(TorchRelease, PinsWheelsThatBelongToItsCuda) {
    for (const TorchRelease* torch : all_torch_releases()) {
        SCOPED_TRACE(torch->version);
        EXPECT_FALSE(torch->source.empty());
        ASSERT_FALSE(torch->pins.empty());
        const std::string suffix = "-cu" + torch->cuda.substr(0, 2);
        const auto runtime = std::find_if(
            torch->pins.begin(), torch->pins.end(),
            [](const Pin& pin) { return pin.package.rfind("nvidia-cuda-runtime", 0) == 0; });
        ASSERT_NE(runtime, torch->pins.end());
        EXPECT_EQ(runtime->version.rfind(torch->cuda + ".", 0), 0U);
        for (const Pin& pin : torch->pins) {
            const bool other = std::regex_search(pin.package, std::regex{"-cu1[0-9]$"}) &&
                               pin.package.find(suffix) == std::string::npos;
            EXPECT_FALSE(other) << pin.package;
        }
    }
}

TEST(CompanionRelease, IsTheOneBuiltForThatVeryTorch) {
    EXPECT_EQ(companion_release("torchvision", "2.9.0+cu128"), "0.24.0");
    EXPECT_EQ(companion_release("torchvision", "2.9.1"), "0.24.1");
    EXPECT_EQ(companion_release("torchaudio", "2.9.0"), "2.9.0");
    EXPECT_EQ(companion_release("torchvision", "2.9.7"), "0.24.1");
    EXPECT_EQ(companion_release("torchtext", "2.9.1"), "");
    EXPECT_EQ(companion_release("torchvision", "1.4.0"), "");
}

TEST(FirstReleaseWith, TellsSinceWhenASymbolIsExported) {
    EXPECT_EQ(first_release_with("nccl", "ncclCommRegister"), "2.19.3");
    EXPECT_EQ(first_release_with("nccl", "ncclCommResume"), "2.29.7");
    EXPECT_EQ(first_release_with("nvJitLink", "__nvJitLinkComplete_12_4"), "12.4");
    EXPECT_EQ(first_release_with("nvJitLink", "__nvJitLinkGetErrorLogSize_12_9"), "12.9");
    EXPECT_EQ(first_release_with("nccl", "ncclNoSuchThing"), std::nullopt);
    EXPECT_EQ(first_release_with("cudart", "ncclCommRegister"), std::nullopt);
}

TEST(BroughtBy, NamesTheReleaseOfASymbolVersion) {
    EXPECT_EQ(brought_by("GLIBCXX_3.4.30"), "GCC 12.1");
    EXPECT_EQ(brought_by("CXXABI_1.3.8"), "GCC 4.9.0");
    EXPECT_EQ(brought_by("GLIBC_2.34"), "glibc 2.34");
    EXPECT_EQ(brought_by("GLIBC_ABI_DT_RELR"), "glibc 2.36");
    EXPECT_EQ(brought_by("GLIBCXX_3.4.99"), "");
    EXPECT_EQ(brought_by("libcudart.so.12"), "");
}

TEST(VersionHint, IsOfALibraryThatIsKnownAndCanBeUsed) {
    for (const char* library : {"nccl", "nvJitLink", "nvrtc"}) {
        const VersionHint* hint = version_hint(library);
        ASSERT_NE(hint, nullptr) << library;
        EXPECT_FALSE(relatives("lib" + std::string{library} + ".so").empty()) << library;
    }
    EXPECT_EQ(version_hint("cudart"), nullptr);
    std::smatch match;
    const std::string symbol = "__nvJitLinkComplete_12_4";
    ASSERT_TRUE(
        std::regex_match(symbol, match, std::regex{version_hint("nvJitLink")->symbol_pattern}));
    EXPECT_EQ(match[1].str() + "." + match[2].str(), "12.4");
}

}  // namespace
}  // namespace cudiag
