#include "diagnose/packages/owner.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace cudiag {
namespace {

namespace fs = std::filesystem;

// A directory of its own for each test, gone with it.
class PackageTree : public ::testing::Test {
  protected:
    PackageTree() {
        std::string name = (fs::temp_directory_path() / "cudiag-packages-XXXXXX").string();
        root_ = fs::canonical(::mkdtemp(name.data())).string();
    }

    ~PackageTree() override {
        std::error_code error;
        fs::remove_all(root_, error);
    }

    PackageTree(const PackageTree&) = delete;
    PackageTree& operator=(const PackageTree&) = delete;

    std::string write(const std::string& relative, const std::string& text = "x") const {
        const fs::path path = fs::path{root_} / relative;
        fs::create_directories(path.parent_path());
        std::ofstream{path} << text;
        return path.string();
    }

    void wheel(const std::string& site, const std::string& name, const std::string& version,
               const std::string& record, const std::string& installer = "pip\n") const {
        std::string escaped = name;
        for (char& c : escaped) {
            c = c == '-' ? '_' : c;
        }
        const std::string info = site + "/" + escaped + "-" + version + ".dist-info/";
        write(info + "METADATA", "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version +
                                     "\n\nName: not this\n");
        write(info + "RECORD", record);
        write(info + "INSTALLER", installer);
    }

    std::string root_;
    const std::string site_ = "v/lib/python3.11/site-packages";
};

TEST_F(PackageTree, AWheelOwnsTheFilesOfItsRecord) {
    const std::string file = write(site_ + "/nvidia/cusparse/lib/libcusparse.so.12");
    wheel(site_, "nvidia-cusparse-cu12", "12.3.1.170",
          "nvidia/cusparse/lib/libcusparse.so.12,sha256=x,1\n");
    wheel(site_, "nvidia-nccl-cu12", "2.27.3", "nvidia/nccl/lib/libnccl.so.2,sha256=x,1\n");
    const auto owner = owner_of(file);
    ASSERT_TRUE(owner);
    EXPECT_EQ(owner->manager, PackageManager::pip);
    EXPECT_EQ(owner->name, "nvidia-cusparse-cu12");
    EXPECT_EQ(owner->version, "12.3.1.170");
    EXPECT_EQ(owner->location, root_ + "/" + site_);
    EXPECT_EQ(owner->installer, "pip");
    EXPECT_FALSE(owner_of(write(site_ + "/nvidia/cusparse/lib/libcusparse.so.11")));
}

TEST_F(PackageTree, AFileOfTheSameNameElsewhereIsNotMistakenForIt) {
    write(site_ + "/a/libx.so");
    const std::string other = write(site_ + "/b/libx.so");
    wheel(site_, "a", "1.0", "a/libx.so,,\n");
    EXPECT_FALSE(owner_of(other));
    EXPECT_FALSE(owner_of(root_ + "/" + site_ + "/a"));  // a directory
}

TEST_F(PackageTree, RecordLinesMayBeQuotedAndEndInCarriageReturns) {
    const std::string comma = write(site_ + "/a/lib,x.so");
    const std::string quote = write(site_ + "/a/li\"b.so");
    wheel(site_, "a", "1.0", "\"a/lib,x.so\",sha256=x,1\r\n\"a/li\"\"b.so\",sha256=x,1\r\n");
    EXPECT_TRUE(owner_of(comma));
    EXPECT_TRUE(owner_of(quote));
}

TEST_F(PackageTree, ALinkIsOwnedByTheOwnerOfItsTarget) {
    write(site_ + "/a/libx.so.1");
    wheel(site_, "a", "1.0", "a/libx.so.1,,\n");
    fs::create_directories(root_ + "/elsewhere");
    fs::create_symlink(root_ + "/" + site_ + "/a/libx.so.1", root_ + "/elsewhere/libx.so");
    const auto owner = owner_of(root_ + "/elsewhere/libx.so");
    ASSERT_TRUE(owner);
    EXPECT_EQ(owner->name, "a");
}

TEST_F(PackageTree, PathsThatWalkBackAreOwnedToo) {
    write(site_ + "/nvidia/nvjitlink/lib/libnvJitLink.so.12");
    write(site_ + "/nvidia/cusparse/lib/libcusparse.so.12");
    wheel(site_, "nvidia-nvjitlink-cu12", "12.4.127",
          "nvidia/nvjitlink/lib/libnvJitLink.so.12,,\n");
    const auto owner = owner_of(root_ + "/" + site_ +
                                "/nvidia/cusparse/lib/../../nvjitlink/lib/libnvJitLink.so.12");
    ASSERT_TRUE(owner);
    EXPECT_EQ(owner->name, "nvidia-nvjitlink-cu12");
}

TEST_F(PackageTree, APlainDirectoryThatPipInstalledIntoCountsAsSitePackages) {
    const std::string file = write("target/nvidia/nccl/lib/libnccl.so.2");
    wheel("target", "nvidia-nccl-cu12", "2.27.3", "nvidia/nccl/lib/libnccl.so.2,,\n");
    EXPECT_EQ(site_packages_of(file), root_ + "/target");
    ASSERT_TRUE(owner_of(file));
    EXPECT_EQ(owner_of(file)->name, "nvidia-nccl-cu12");
    EXPECT_EQ(site_packages_of(root_ + "/elsewhere/x.so"), "");
}

TEST_F(PackageTree, AnEggInfoOwnsItsInstalledFiles) {
    const std::string file = write(site_ + "/old/_C.so");
    write(site_ + "/old_pkg-0.3-py3.11.egg-info/PKG-INFO", "Name: old-pkg\nVersion: 0.3\n");
    write(site_ + "/old_pkg-0.3-py3.11.egg-info/installed-files.txt", "../old/_C.so\nPKG-INFO\n");
    const auto owner = owner_of(file);
    ASSERT_TRUE(owner);
    EXPECT_EQ(owner->name, "old-pkg");
    EXPECT_EQ(owner->version, "0.3");
}

TEST_F(PackageTree, AnEggDirectoryOwnsAllThatIsInIt) {
    const std::string file = write(site_ + "/apex-0.1-py3.11-linux-x86_64.egg/amp_C.so");
    write(site_ + "/apex-0.1-py3.11-linux-x86_64.egg/EGG-INFO/PKG-INFO",
          "Name: apex\nVersion: 0.1\n");
    const auto owner = owner_of(file);
    ASSERT_TRUE(owner);
    EXPECT_EQ(owner->name, "apex");
    EXPECT_EQ(owner->version, "0.1");
}

TEST_F(PackageTree, AnEditablePackageOwnsItsSourceTree) {
    const std::string file = write("src/proj/_C.so");
    wheel(site_, "proj", "0.1.dev0", "__editable__.proj.pth,,\n");
    write(site_ + "/proj-0.1.dev0.dist-info/direct_url.json",
          R"({"url": "file://)" + root_ + R"(/src", "dir_info": {"editable": true}})");
    EXPECT_FALSE(owner_of(file));  // nothing leads from there to the environment
    const auto owner = owner_of(file, {"", {root_ + "/" + site_}});
    ASSERT_TRUE(owner);
    EXPECT_EQ(owner->name, "proj");
    EXPECT_TRUE(owner->editable);
    EXPECT_FALSE(owner_of(write("src2/_C.so"), {"", {root_ + "/" + site_}}));
}

TEST_F(PackageTree, AnEggLinkIsAnEditablePackageToo) {
    const std::string file = write("src/proj/_C.so");
    write("src/proj.egg-info/PKG-INFO", "Name: proj\nVersion: 0.2\n");
    write(site_ + "/proj.egg-link", root_ + "/src\n.\n");
    const auto owner = owner_of(file, {"", {root_ + "/" + site_}});
    ASSERT_TRUE(owner);
    EXPECT_EQ(owner->name, "proj");
    EXPECT_EQ(owner->version, "0.2");
}

TEST_F(PackageTree, CondaOwnsTheFilesOfItsPrefix) {
    const std::string file = write("env/lib/libcudart.so.12.4.127");
    write("env/conda-meta/history");
    write(
        "env/conda-meta/cuda-cudart-12.4.127-0.json",
        R"({"name": "cuda-cudart", "version": "12.4.127", "files": ["lib/libcudart.so.12", "lib/libcudart.so.12.4.127"]})");
    write("env/conda-meta/broken-1-0.json",
          R"({"name": "broken", "files": ["lib/libcudart.so.12.4.127")");
    fs::create_symlink("libcudart.so.12.4.127", root_ + "/env/lib/libcudart.so.12");
    for (const std::string& path : {file, root_ + "/env/lib/libcudart.so.12"}) {
        const auto owner = owner_of(path);
        ASSERT_TRUE(owner) << path;
        EXPECT_EQ(owner->manager, PackageManager::conda);
        EXPECT_EQ(owner->name, "cuda-cudart");
        EXPECT_EQ(owner->version, "12.4.127");
        EXPECT_EQ(owner->location, root_ + "/env");
    }
}

TEST_F(PackageTree, AWheelThatCondaInstalledIsCondas) {
    const std::string file = write("env/lib/python3.11/site-packages/torch/lib/libtorch.so");
    wheel("env/lib/python3.11/site-packages", "torch", "2.5.1", "torch/lib/libtorch.so,,\n",
          "conda\n");
    write(
        "env/conda-meta/pytorch-2.5.1-0.json",
        R"({"name": "pytorch", "version": "2.5.1", "files": ["lib/python3.11/site-packages/torch/lib/libtorch.so"]})");
    const auto owner = owner_of(file);
    ASSERT_TRUE(owner);
    EXPECT_EQ(owner->manager, PackageManager::conda);
    EXPECT_EQ(owner->name, "pytorch");
}

TEST_F(PackageTree, AWheelThatPipPutIntoACondaEnvironmentIsPips) {
    const std::string file = write("env/lib/python3.11/site-packages/torch/lib/libtorch.so");
    wheel("env/lib/python3.11/site-packages", "torch", "2.5.1", "torch/lib/libtorch.so,,\n");
    write("env/conda-meta/history");
    ASSERT_TRUE(owner_of(file));
    EXPECT_EQ(owner_of(file)->manager, PackageManager::pip);
}

class DpkgTree : public PackageTree {
  protected:
    DpkgTree() {
        write("var/lib/dpkg/status",
              "Package: libstdc++6\nStatus: install ok installed\nArchitecture: i386\nVersion: "
              "1-i386\n\n"
              "Package: libstdc++6\nStatus: install ok installed\nArchitecture: amd64\nVersion: "
              "12.2.0-14\n\n"
              "Package: libcuda1\nArchitecture: amd64\nVersion: 535.1\n");
        write("var/lib/dpkg/info/libstdc++6:amd64.list",
              "/.\n/usr\n/usr/lib/x86_64-linux-gnu/libstdc++.so.6\n");
        write("var/lib/dpkg/info/libcuda1:amd64.list", "/lib/x86_64-linux-gnu/libcuda.so.1\n");
    }

    std::optional<Package> owner(const std::string& path) const {
        return owner_of(path, {root_, {}});
    }
};

TEST_F(DpkgTree, APackageOwnsTheLinesOfItsList) {
    const auto package = owner("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
    ASSERT_TRUE(package);
    EXPECT_EQ(package->manager, PackageManager::dpkg);
    EXPECT_EQ(package->name, "libstdc++6");
    EXPECT_EQ(package->version, "12.2.0-14");  // of its own architecture
    EXPECT_FALSE(owner("/usr/lib/x86_64-linux-gnu/libstdc++.so"));
    EXPECT_FALSE(owner("/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30"));
}

TEST_F(DpkgTree, TheLogTellsWhenThePackageBecameWhatItIs) {
    const auto package = owner("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
    ASSERT_TRUE(package);
    const auto change = [&] { return last_change(*package, {root_, {}}); };
    EXPECT_FALSE(change());  // no log
    write("var/log/dpkg.log.1",
          "2026-10-31 06:00:01 startup packages configure\n"
          "2026-10-31 06:00:02 install libstdc++6:amd64 <none> 12.2.0-14\n");
    ASSERT_TRUE(change());
    EXPECT_EQ(change()->time, "2026-10-31 06:00:02");
    EXPECT_EQ(change()->before, "");
    write("var/log/dpkg.log",
          "2026-11-30 06:12:33 upgrade libstdc++6:amd64 12.2.0-13 12.2.0-14\n"
          "2026-11-30 06:12:34 status installed libstdc++6:amd64 12.2.0-14\n"
          "2026-11-30 06:12:35 upgrade libstdc++6-dev:amd64 12.2.0-10 12.2.0-14\n"
          "2026-12-01 06:12:33 upgrade libstdc++6:amd64 12.2.0-14 12.2.0-15\n");  // undone since
    ASSERT_TRUE(change());
    EXPECT_EQ(change()->time, "2026-11-30 06:12:33");
    EXPECT_EQ(change()->before, "12.2.0-13");
}

TEST_F(DpkgTree, BothSpellingsOfAMergedUsrAreOneFile) {
    EXPECT_FALSE(owner("/lib/x86_64-linux-gnu/libstdc++.so.6"));  // not merged: another file
    fs::create_symlink("usr/lib", root_ + "/lib");
    EXPECT_TRUE(owner("/lib/x86_64-linux-gnu/libstdc++.so.6"));
    EXPECT_TRUE(owner("/usr/lib/x86_64-linux-gnu/libcuda.so.1"));
}

TEST_F(DpkgTree, ADivertedPathBelongsToThePackageThatDivertedIt) {
    write("var/lib/dpkg/info/glx-diversions.list", "/lib/x86_64-linux-gnu/libcuda.so.1\n");
    write("var/lib/dpkg/diversions",
          "/lib/x86_64-linux-gnu/libcuda.so.1\n/lib/x86_64-linux-gnu/aside/"
          "libcuda.so.1\nglx-diversions\n");
    ASSERT_TRUE(owner("/lib/x86_64-linux-gnu/libcuda.so.1"));
    EXPECT_EQ(owner("/lib/x86_64-linux-gnu/libcuda.so.1")->name, "glx-diversions");
    ASSERT_TRUE(owner("/lib/x86_64-linux-gnu/aside/libcuda.so.1"));
    EXPECT_EQ(owner("/lib/x86_64-linux-gnu/aside/libcuda.so.1")->name, "libcuda1");
}

TEST_F(DpkgTree, MissingFilesAreThoseOfTheListButNotDocumentation) {
    write("var/lib/dpkg/info/libstdc++6:amd64.list",
          "/.\n/usr/lib/x86_64-linux-gnu/libstdc++.so.6\n/usr/share/doc/libstdc++6/copyright\n");
    const auto package = owner("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
    ASSERT_TRUE(package);
    EXPECT_EQ(missing_files(*package, {root_, {}}),
              (std::vector<std::string>{"/usr/lib/x86_64-linux-gnu/libstdc++.so.6"}));
    write("usr/lib/x86_64-linux-gnu/libstdc++.so.6");
    EXPECT_TRUE(missing_files(*package, {root_, {}}).empty());
}

TEST_F(PackageTree, MissingFilesLeaveOutWhatHealthyMachinesLack) {
    write(site_ + "/a/lib/libx.so.1");
    wheel(site_, "a", "1.0",
          "a/lib/libx.so.1,,1\na/lib/libgone.so.2,,1\na/__pycache__/m.cpython-311.pyc,,\n../../../"
          "bin/tool,,1\n");
    const auto package = pip_package(root_ + "/" + site_, "a");
    ASSERT_TRUE(package);
    EXPECT_EQ(missing_files(*package),
              (std::vector<std::string>{root_ + "/" + site_ + "/a/lib/libgone.so.2"}));
}

TEST_F(PackageTree, ContestedFilesAreLibrariesThatTwoWheelsList) {
    wheel(site_, "nvidia-nccl-cu12", "2.27.3",
          "nvidia/nccl/lib/libnccl.so.2,,1\nnvidia/__init__.py,,0\n");
    wheel(site_, "nvidia-nccl-cu13", "2.28.9",
          "nvidia/nccl/lib/libnccl.so.2,,1\nnvidia/__init__.py,,0\n");
    const auto package = pip_package(root_ + "/" + site_, "nvidia-nccl-cu12");
    ASSERT_TRUE(package);
    const auto contested = contested_files(*package);
    ASSERT_EQ(contested.size(), 1U);
    EXPECT_EQ(contested[0].path, root_ + "/" + site_ + "/nvidia/nccl/lib/libnccl.so.2");
    EXPECT_EQ(contested[0].other, "nvidia-nccl-cu13");
}

TEST_F(PackageTree, AlteredFilesAreLibrariesOfAnotherSize) {
    write(site_ + "/a/libsame.so", "1234");
    write(site_ + "/a/libother.so.2", "12345678");
    write(site_ + "/a/m.py", "12345678");
    wheel(site_, "a", "1.0", "a/libsame.so,,4\na/libother.so.2,,4\na/m.py,,4\na/libgone.so,,4\n");
    const auto package = pip_package(root_ + "/" + site_, "a");
    ASSERT_TRUE(package);
    EXPECT_EQ(altered_files(*package),
              (std::vector<std::string>{root_ + "/" + site_ + "/a/libother.so.2"}));
}

TEST_F(PackageTree, PackagesAreFoundByAnySpellingOfTheirName) {
    wheel(site_, "Nvidia.CuSparse-cu12", "12.0", "");
    wheel(site_, "torch", "2.11.0+cu126", "");
    const std::string site = root_ + "/" + site_;
    ASSERT_TRUE(pip_package(site, "torch"));
    EXPECT_EQ(pip_package(site, "torch")->version, "2.11.0+cu126");
    EXPECT_TRUE(pip_package(site, "Torch"));
    EXPECT_FALSE(pip_package(site, "tor"));
    EXPECT_EQ(pip_packages(site).size(), 2U);
    EXPECT_EQ(pip_packages(site, {"nvidia_cusparse-cu12", "absent"}).size(), 1U);
    EXPECT_TRUE(pip_packages(root_ + "/nowhere").empty());
}

TEST_F(PackageTree, BrokenDatabasesOwnNothingAndHarmNothing) {
    const std::string file = write(site_ + "/a/libx.so");
    write(site_ + "/a-1.dist-info/RECORD", std::string("\"a/libx\0.so,,,\n\"\n,\n\"", 20));
    write(site_ + "/a-1.dist-info/direct_url.json", R"({"dir_info": 3, "url": []})");
    fs::create_directories(root_ + "/" + site_ +
                           "/b-1.dist-info/RECORD");  // a directory where a file should be
    write("conda-meta/a.json", R"(["lib"])");
    write("conda-meta/b.json", R"({"files": {"v/lib/python3.11/site-packages/a/libx.so": 1}})");
    EXPECT_FALSE(owner_of(file, {root_, {root_ + "/" + site_}}));
    EXPECT_FALSE(owner_of(""));
    EXPECT_EQ(pip_packages(root_ + "/" + site_).size(), 2U);
}

TEST(SitePackages, AreFoundByName) {
    EXPECT_EQ(site_packages_of("/v/lib/python3.11/site-packages/torch/lib/libtorch.so"),
              "/v/lib/python3.11/site-packages");
    EXPECT_EQ(site_packages_of("/usr/lib/python3/dist-packages/numpy/x.so"),
              "/usr/lib/python3/dist-packages");
    EXPECT_EQ(site_packages_of("/nowhere/at/all.so"), "");
    EXPECT_EQ(site_packages_of(""), "");
}

}  // namespace
}  // namespace cudiag
