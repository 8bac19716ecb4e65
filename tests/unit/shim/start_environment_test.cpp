#include "shim/start_environment.h"

#include <gtest/gtest.h>
#include <string.h>

#include <map>
#include <string>
#include <vector>

namespace cudiag {
namespace {

// One process, one start: all tests look at the same one.
class StartEnvironmentTest : public ::testing::Test {
  protected:
    static void SetUpTestSuite() {
        static std::vector<std::string> strings = {"LD_LIBRARY_PATH=/a:/b",
                                                   "CUDA_HOME=/usr/local/cuda",
                                                   "NCCL_DEBUG=INFO",
                                                   "HF_TOKEN=secret",
                                                   "TORCH_API_KEY=secret",
                                                   "CUDIAG_SECRET=secret",
                                                   "NV_PASSWORD=secret",
                                                   "PATH=/bin",
                                                   "HOME=/root",
                                                   "EDITOR=vi",
                                                   "no equals sign",
                                                   "CUDIAG_PRINT=",
                                                   "CUDIAG_LONG=" + std::string(40000, 'x')};
        static std::vector<char*> pointers;
        for (std::string& string : strings) {
            pointers.push_back(string.data());
        }
        pointers.push_back(nullptr);
        remember_environment(pointers.data());
        // As setproctitle does; the long one did not fit into the copies.
        for (std::size_t i = 0; i + 1 < strings.size(); ++i) {
            memset(strings[i].data(), 'x', strings[i].size());
        }
    }

    static std::map<std::string, std::string> recorded() {
        std::map<std::string, std::string> found;
        for_each_recorded(
            [](const char* name, std::size_t length, const char* value, void* context) {
                (*static_cast<std::map<std::string, std::string>*>(context))[{name, length}] =
                    value;
            },
            &found);
        return found;
    }
};

TEST_F(StartEnvironmentTest, RecordsTheNamesThatMatterHereAsTheyWere) {
    const auto found = recorded();
    EXPECT_EQ(found.at("LD_LIBRARY_PATH"), "/a:/b");
    EXPECT_EQ(found.at("CUDA_HOME"), "/usr/local/cuda");
    EXPECT_EQ(found.at("NCCL_DEBUG"), "INFO");
    EXPECT_EQ(found.at("PATH"), "/bin");
    EXPECT_EQ(found.at("CUDIAG_PRINT"), "");
    EXPECT_EQ(found.at("CUDIAG_LONG").size(), 40000U);
    EXPECT_EQ(found.count("EDITOR"), 0U);
    EXPECT_EQ(found.at("HOME"), "/root");
}

TEST_F(StartEnvironmentTest, NeverRecordsOrPassesASecret) {
    for (const char* name : {"HF_TOKEN", "TORCH_API_KEY", "CUDIAG_SECRET", "NV_PASSWORD"}) {
        EXPECT_EQ(recorded().count(name), 0U) << name;
        EXPECT_EQ(start_variable(name), nullptr) << name;
    }
}

TEST_F(StartEnvironmentTest, TheCommandGetsNoLoaderVariable) {
    const char* variables[64];
    command_environment(variables, 64);
    std::map<std::string, std::string> passed;
    for (const char** at = variables; *at != nullptr; ++at) {
        const std::string variable = *at;
        passed[variable.substr(0, variable.find('='))] = variable.substr(variable.find('=') + 1);
    }
    EXPECT_EQ(passed.at("HOME"), "/root");
    EXPECT_EQ(passed.at("PATH"), "/bin");
    EXPECT_EQ(passed.count("LD_LIBRARY_PATH"), 0U);
    EXPECT_EQ(passed.count("CUDA_HOME"), 0U);
}

TEST_F(StartEnvironmentTest, ATableThatIsTooSmallIsCutAndEnded) {
    const char* variables[2] = {"x", "x"};
    command_environment(variables, 2);
    EXPECT_EQ(variables[1], nullptr);
}

}  // namespace
}  // namespace cudiag
