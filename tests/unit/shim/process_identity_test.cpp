#include "shim/process_identity.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace cudiag {
namespace {

class TextFile {
  public:
    explicit TextFile(const std::string& text) {
        char name[] = "/tmp/cudiag-unit-XXXXXX";
        const int file = mkstemp(name);
        (void)close(file);
        path_ = name;
        std::ofstream{path_, std::ios::binary} << text;
    }

    ~TextFile() { (void)unlink(path_.c_str()); }

    TextFile(const TextFile&) = delete;
    TextFile& operator=(const TextFile&) = delete;

    const char* path() const { return path_.c_str(); }

  private:
    std::string path_;
};

TEST(FileHoldsTest, FindsAPatternWhereverTheReadsCutTheFile) {
    const std::string pattern = "/libcudiag.so";
    for (std::size_t before = 1000; before < 1040; ++before) {
        const TextFile file{std::string(before, 'x') + pattern + std::string(3000, 'y')};
        EXPECT_TRUE(file_holds(file.path(), pattern.c_str())) << before;
    }
}

TEST(FileHoldsTest, FindsAPatternBehindAFalseStart) {
    EXPECT_TRUE(file_holds(TextFile{"/a/a/b\n"}.path(), "/a/b\n"));
    EXPECT_TRUE(file_holds(TextFile{"aaaaaab"}.path(), "aaab"));
    EXPECT_TRUE(file_holds(TextFile{"//libcudiag.so"}.path(), "/libcudiag.so"));
    EXPECT_TRUE(file_holds(TextFile{"/lib/libcudiag.so"}.path(), "/libcudiag.so"));
}

TEST(FileHoldsTest, SaysNoToWhatIsNotThere) {
    EXPECT_FALSE(file_holds(TextFile{"/libcudiag.s"}.path(), "/libcudiag.so"));
    EXPECT_FALSE(file_holds(TextFile{""}.path(), "/libcudiag.so"));
    EXPECT_FALSE(file_holds("/absent/file", "x"));
    EXPECT_FALSE(file_holds(TextFile{"x"}.path(), ""));
    EXPECT_FALSE(file_holds(TextFile{"x"}.path(), std::string(5000, 'x').c_str()));
}

TEST(ProcessIdentityTest, AProcessWithoutTheShimAboveItIsItsOwnRoot) {
    const ProcessIdentity identity = identify_process();
    EXPECT_EQ(identity.pid, getpid());
    EXPECT_EQ(identity.ppid, getppid());
    EXPECT_EQ(identity.root_pid, getpid());
    EXPECT_GT(identity.start_ticks, 0U);
    EXPECT_EQ(identity.root_start_ticks, identity.start_ticks);
}

TEST(ProcessIdentityTest, ShellsAndBareLaunchersAreNoRoots) {
    for (const char* name : {"sh", "bash", "env", "timeout", "srun", "tini", "strace"}) {
        EXPECT_TRUE(is_launcher(name)) << name;
    }
    for (const char* name : {"python3", "torchrun", "gcc", "bash2", ""}) {
        EXPECT_FALSE(is_launcher(name)) << name;
    }
}

TEST(ReadFileTest, CutsAndTerminates) {
    const TextFile file{"0123456789"};
    char buffer[5];
    EXPECT_EQ(read_file(file.path(), buffer, sizeof buffer), 4);
    EXPECT_STREQ(buffer, "0123");
    EXPECT_EQ(read_file("/absent/file", buffer, sizeof buffer), -1);
}

}  // namespace
}  // namespace cudiag
