#include "diagnose/knowledge/cuda.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "diagnose/knowledge/cuda_tables.h"
#include "diagnose/knowledge/ptx_versions.h"

namespace cudiag {
namespace {

// The enumerators of one enum in a header: name and code.
std::map<std::string, int> enumerators(const std::string& path, const std::string& name) {
    std::ifstream file{path};
    std::stringstream whole;
    whole << file.rdbuf();
    const std::string text = whole.str();
    std::map<std::string, int> result;
    const std::regex head{"enum\\s+(?:__device_builtin__\\s+)?" + name + "\\s*\\{"};
    std::smatch begin;
    if (!std::regex_search(text, begin, head)) {
        return result;
    }
    std::istringstream lines{text.substr(static_cast<std::size_t>(begin.position()))};
    static const std::regex entry{R"(^\s*(\w+)\s*=\s*(\d+)\s*,?)"};
    for (std::string line; std::getline(lines, line) && line.rfind("}", 0) != 0;) {
        std::smatch match;
        if (std::regex_search(line, match, entry)) {
            result[match[1]] = std::stoi(match[2]);
        }
    }
    return result;
}

void knows_all(const std::map<std::string, int>& header) {
    for (const auto& [name, code] : header) {
        const CudaError* error = cuda_error_named(name);
        ASSERT_NE(error, nullptr) << name;
        EXPECT_EQ(error->code, code) << name;
    }
}

TEST(CudaErrors, HoldEveryEnumeratorOfTheMachinesHeaders) {
    const std::string include = "/usr/local/cuda/include";
    if (!std::filesystem::exists(include + "/cuda.h")) {
        GTEST_SKIP() << "no CUDA toolkit on this machine";
    }
    const auto driver = enumerators(include + "/cuda.h", "cudaError_enum");
    const auto runtime = enumerators(include + "/driver_types.h", "cudaError");
    EXPECT_GT(driver.size(), 90U);
    EXPECT_GT(runtime.size(), 120U);
    knows_all(driver);
    knows_all(runtime);
}

TEST(CudaErrors, AnswerByCodeByNameAndByWords) {
    ASSERT_NE(cuda_error(100), nullptr);
    EXPECT_EQ(cuda_error(100)->driver, "CUDA_ERROR_NO_DEVICE");
    EXPECT_EQ(cuda_error(100)->runtime, "cudaErrorNoDevice");
    EXPECT_TRUE(cuda_error(700)->sticky);
    EXPECT_FALSE(cuda_error(100)->sticky);
    EXPECT_TRUE(cuda_error(600)->probe);
    EXPECT_EQ(cuda_error(721)->driver_in, "12.9");
    EXPECT_EQ(cuda_error(4711), nullptr);
    EXPECT_EQ(cuda_error_named("cudaErrorNoDevice")->code, 100);
    EXPECT_EQ(cuda_error_named("cudaErrorOfNobody"), nullptr);
    EXPECT_EQ(cuda_error_saying("no CUDA-capable device is detected (and more)")->code, 100);
    EXPECT_EQ(cuda_error_saying("nothing of the kind"), nullptr);
}

TEST(CudaErrors, EachHasASentenceAndASource) {
    for (const CudaError* error : all_cuda_errors()) {
        EXPECT_EQ(error->meaning.back(), '.') << error->code;
        EXPECT_FALSE(error->source.empty()) << error->code;
    }
}

TEST(Drivers, AreKnownByReleaseAndByBranch) {
    EXPECT_EQ(driver_release_in("libcuda.so.550.54.14"), "550.54.14");
    EXPECT_EQ(driver_release_in("libcuda.so.535.104"), "535.104");
    EXPECT_EQ(driver_release_in("libcuda.so.1"), "");
    EXPECT_EQ(driver_release_in("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
                                "580.95.05  Release Build  (root@host)"),
              "580.95.05");
    EXPECT_EQ(driver_release_in("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Fri"),
              "570.86.15");
    EXPECT_EQ(driver_release_in(""), "");
    EXPECT_EQ(cuda_of_driver("550.54.14"), "12.4");
    EXPECT_EQ(cuda_of_driver("111.1"), "");
    EXPECT_EQ(cuda_release_of(12040), "12.4");
    EXPECT_EQ(cuda_release_of(11080), "11.8");
    EXPECT_EQ(cuda_release_of(0), "");
}

TEST(Drivers, HaveAMinimumForEveryMajor) {
    ASSERT_NE(driver_need("12.8"), nullptr);
    EXPECT_EQ(driver_need("12.8")->minimum, "525.60.13");
    EXPECT_EQ(driver_need("13.x")->minimum, "580.65.06");
    EXPECT_EQ(driver_need("11.8")->minimum, "450.80.02");
    EXPECT_EQ(driver_need("9.2"), nullptr);
    EXPECT_EQ(driver_need(""), nullptr);
}

TEST(CudaTexts, EachTellsACode) {
    for (const TextPattern* pattern : all_cuda_texts()) {
        bool told = false;
        for (const CudaText& text : cuda_texts_of(pattern->example)) {
            told = told || text.code != 0;
        }
        EXPECT_TRUE(told) << pattern->name;
    }
}

TEST(CudaTexts, StandInTheOrderOfTheMessage) {
    const auto found = cuda_texts_of(
        "CUDA error: no CUDA-capable device is detected\nSearch for `cudaErrorNoDevice' in the "
        "docs");
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].code, 100);
    EXPECT_EQ(found[1].code, 100);
    EXPECT_TRUE(cuda_texts_of("CUDA_HOME is not set").empty());
    EXPECT_TRUE(cuda_texts_of("").empty());
    // A long log, with the words in the middle of a line without end.
    const auto late = cuda_texts_of(std::string(300'000, 'x') + " CUDA_ERROR_NO_DEVICE " +
                                    std::string(300'000, 'y'));
    ASSERT_EQ(late.size(), 1U);
    EXPECT_EQ(late[0].code, 100);
}

std::string refusal(void (*parse)(std::string_view), const char* json) {
    try {
        parse(json);
    } catch (const KnowledgeError& error) {
        return error.what();
    }
    return {};
}

TEST(CudaTables, RefuseWhatIsMalformed) {
    EXPECT_NE(
        refusal(
            [](std::string_view json) { parse_cuda_errors(json); },
            R"({"source": "s", "errors": [{"code": "x", "driver": "D", "meaning": "m.", "source": "s"}]})")
            .find("not a number"),
        std::string::npos);
    EXPECT_NE(
        refusal([](std::string_view json) { parse_cuda_errors(json); },
                R"({"source": "s", "errors": [{"code": "1", "meaning": "m.", "source": "s"}]})")
            .find("no name"),
        std::string::npos);
    EXPECT_NE(refusal([](std::string_view json) { parse_drivers(json); },
                      R"({"runtimes": [{"cuda": "12.x", "minimum": "new", "source": "s"}],
                          "branches": [{"branch": "1", "cuda": "1.0", "source": "s"}]})")
                  .find("no release"),
              std::string::npos);
    EXPECT_NE(
        refusal(
            [](std::string_view json) { parse_cuda_texts(json); },
            R"({"texts": [{"name": "n", "contains": "a", "pattern": "b", "example": "a", "source": "s"}]})")
            .find("its own example"),
        std::string::npos);
    EXPECT_NE(
        refusal(
            [](std::string_view json) { parse_unavailable(json); },
            R"({"codes": [{"code": "3", "title": "t", "limits": "l", "source": "s", "lkely": true}]})")
            .find("lkely"),
        std::string::npos);
}

TEST(PtxVersions, TellWhichDriversCompileThem) {
    ASSERT_NE(ptx_version("8.4"), nullptr);
    EXPECT_EQ(ptx_version("8.4")->cuda, "12.4");
    EXPECT_EQ(ptx_version("8.4")->driver, "550");
    EXPECT_EQ(ptx_version("9.0")->cuda, "13.0");
    EXPECT_EQ(ptx_version("8.9"), nullptr);
    EXPECT_EQ(ptx_known_to("12.4", "8.4"), true);
    EXPECT_EQ(ptx_known_to("12.3", "8.4"), false);
    EXPECT_EQ(ptx_known_to("12.6", "8.6"), false);
    EXPECT_EQ(ptx_known_to("13.0", "8.4"), true);
    EXPECT_EQ(ptx_known_to("9.2", "8.4"), false);
    EXPECT_EQ(ptx_known_to("", "8.4"), std::nullopt);
    EXPECT_EQ(ptx_known_to("12.4", "10.7"), std::nullopt);
    EXPECT_TRUE(ptx_problems().empty());
}

TEST(PtxVersions, AreOfTheBranchThatDriversJsonHas) {
    std::size_t compared = 0;
    for (const PtxVersion* version : all_ptx_versions()) {
        const std::string cuda = cuda_of_driver(version->driver);
        compared += cuda.empty() ? 0 : 1;
        EXPECT_TRUE(cuda.empty() || cuda == version->cuda) << version->ptx;
    }
    EXPECT_GT(compared, 15U);
}

TEST(PtxVersions, RefuseWhatIsMalformed) {
    const auto refused = [](const std::string& rows) {
        const std::string json = R"({"source": "s", "versions": [)" + rows + "]}";
        return refusal([](std::string_view text) { parse_ptx_versions(text); }, json.c_str());
    };
    const std::string good = R"({"ptx": "8.4", "cuda": "12.4", "driver": "550", "source": "s"})";
    EXPECT_EQ(refused(good), "");
    EXPECT_NE(refused(good + "," + good).find("twice"), std::string::npos);
    EXPECT_NE(refused(R"({"ptx": "84", "cuda": "12.4", "source": "s"})").find("no release"),
              std::string::npos);
    EXPECT_NE(refused(R"({"ptx": "8.4", "cuda": "12.4", "driver": "r550", "source": "s"})")
                  .find("no release"),
              std::string::npos);
    EXPECT_NE(refused(R"({"ptx": "8.4", "cuda": "12.4"})").find("source"), std::string::npos);
}

}  // namespace
}  // namespace cudiag
