// The readers against what the real tools write: pip's own `install -t`, and this machine's dpkg.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "diagnose/packages/owner.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

// Exit status of a shell command; its output goes nowhere.
int quietly(const std::string& command) {
    return std::system((command + " >/dev/null 2>&1").c_str());
}

std::string first_line_of(const std::string& command) {
    std::string line;
    if (FILE* pipe = ::popen(command.c_str(), "r"); pipe != nullptr) {
        std::array<char, 4096> buffer{};
        if (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) {
            line = buffer.data();
        }
        static_cast<void>(::pclose(pipe));
    }
    return line.substr(0, line.find('\n'));
}

TEST(RealPip, AWheelInstalledWithTargetOwnsItsFiles) {
    if (quietly("python3 -m pip --version") != 0) {
        GTEST_SKIP() << "no pip for python3";
    }
    std::string name = (fs::temp_directory_path() / "cudiag-pip-XXXXXX").string();
    const fs::path root = fs::canonical(::mkdtemp(name.data()));
    fs::create_directories(root / "src/cudiag_probe");
    // A wheel by hand, so that the test needs no network: pip unpacks it and writes RECORD,
    // INSTALLER and REQUESTED.
    std::ofstream{root / "make.py"} <<
        R"(import sys, zipfile
info = 'cudiag_probe-1.2+cu130.dist-info/'
with zipfile.ZipFile(sys.argv[1] + '/cudiag_probe-1.2+cu130-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('cudiag_probe/lib/libprobe.so.1', 'not really')
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\nName: Cudiag.Probe\nVersion: 1.2+cu130\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr(info + 'RECORD', 'cudiag_probe/lib/libprobe.so.1,,\n')
)";
    const std::string at = root.string();
    ASSERT_EQ(quietly("python3 " + at + "/make.py " + at), 0);
    ASSERT_EQ(quietly("python3 -m pip install --no-index --no-deps -t " + at + "/target " + at +
                      "/*.whl"),
              0);
    const auto owner = owner_of(at + "/target/cudiag_probe/lib/libprobe.so.1");
    ASSERT_TRUE(owner);
    EXPECT_EQ(owner->manager, PackageManager::pip);
    EXPECT_EQ(owner->name, "Cudiag.Probe");
    EXPECT_EQ(owner->version, "1.2+cu130");
    EXPECT_EQ(owner->installer, "pip");
    EXPECT_TRUE(missing_files(*owner).empty());
    EXPECT_TRUE(altered_files(*owner).empty());
    fs::remove(root / "target/cudiag_probe/lib/libprobe.so.1");
    EXPECT_EQ(missing_files(*owner),
              (std::vector<std::string>{at + "/target/cudiag_probe/lib/libprobe.so.1"}));
    fs::remove_all(root);
}

TEST(RealDpkg, AgreesWithDpkgItselfOnTheOwnerOfLibstdcxx) {
    if (quietly("dpkg-query --version") != 0) {
        GTEST_SKIP() << "no dpkg here";
    }
    const std::string path = first_line_of("ls /usr/lib/*-linux-gnu/libstdc++.so.6 2>/dev/null");
    const std::string said =
        first_line_of("dpkg-query -W -f '${Package} ${Version}\\n' libstdc++6 2>/dev/null");
    if (path.empty() || said.empty()) {
        GTEST_SKIP() << "libstdc++6 is not a package here";
    }
    const auto owner = owner_of(path);
    ASSERT_TRUE(owner);
    EXPECT_EQ(owner->manager, PackageManager::dpkg);
    EXPECT_EQ(owner->name + " " + owner->version, said);
    EXPECT_TRUE(missing_files(*owner).empty());
}

}  // namespace
}  // namespace cudiag
