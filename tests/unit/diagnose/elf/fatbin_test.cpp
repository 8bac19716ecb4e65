#include "diagnose/elf/fatbin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "../loader/elf_world.h"
#include "diagnose/elf/elf_image.h"
#include "tests/unit/diagnose/elf/made_fatbin.h"

namespace cudiag {
namespace {

using Names = std::set<std::string>;

constexpr const char* kToolkit = "/usr/local/cuda/bin";

using testing::bytes_of;
using testing::fatbin;
using testing::image;

Names names(const std::vector<DeviceCode>& code) {
    Names result;
    for (const DeviceCode& one : code) {
        result.insert(one.name());
    }
    return result;
}

std::string output_of(const std::string& command, const std::string& cwd = "") {
    return run_loader({"/bin/sh", "-c", command + " 2>&1"},
                      {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"}, cwd, 300)
        .out;
}

bool has_nvcc() {
    return std::filesystem::exists(std::string{kToolkit} + "/nvcc");
}

// cuobjdump is not in every toolkit: CUDIAG_CUOBJDUMP names another one.
std::string cuobjdump() {
    const char* named = std::getenv("CUDIAG_CUOBJDUMP");
    const std::string path = named != nullptr ? named : std::string{kToolkit} + "/cuobjdump";
    return std::filesystem::exists(path) ? path : std::string{};
}

// What cuobjdump lists, in our words. It calls SASS of a family sm_100, as NVIDIA holds the two to
// be the same. It gives up at SASS for architectures that its release has dropped: `whole` is
// false.
Names listed(const std::string& file, bool* whole = nullptr) {
    const std::string text = output_of(cuobjdump() + " --list-elf --list-ptx " + file + " 2>&1");
    if (whole != nullptr) {
        *whole = text.find("cuobjdump fatal") == std::string::npos;
    }
    static const std::regex line{R"(\.sm_([0-9]+[a-z]?)\.(cubin|ptx)\n)"};
    Names result;
    for (std::sregex_iterator at{text.begin(), text.end(), line}, end; at != end; ++at) {
        result.insert(((*at)[2] == "ptx" ? "compute_" : "sm_") + (*at)[1].str());
    }
    return result;
}

// Ours, without what cuobjdump does not tell.
Names as_listed(const std::vector<DeviceCode>& code, bool with_relocatable) {
    Names result;
    for (DeviceCode one : code) {
        if (!one.ptx && one.variant == "f") {
            one.variant.clear();
        }
        if (!one.lto && (with_relocatable || !one.relocatable)) {
            result.insert(one.name());
        }
    }
    return result;
}

// Files of every kind, made by the machine's nvcc.
class NvccWorld {
  public:
    NvccWorld() {
        world_.text("k.cu",
                    "__global__ void k(int* p) { *p = 1; }\n"
                    "int main() { k<<<1, 1>>>(nullptr); return 0; }\n");
    }

    // `what` after nvcc, in the world's folder; the path of the output.
    std::string make(const std::string& what, const std::string& output) const {
        const std::string said =
            output_of(std::string{kToolkit} + "/nvcc " + what + " -o " + output, world_.path());
        EXPECT_TRUE(std::filesystem::exists(world_.path(output))) << what << "\n" << said;
        return world_.path(output);
    }

    const ElfWorld& files() const { return world_; }

  private:
    ElfWorld world_;
};

constexpr const char* kSome =
    "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=[sm_90a,compute_90a] "
    "-gencode arch=compute_100f,code=[sm_100f,compute_100f] "
    "-gencode arch=compute_120,code=[sm_120,compute_120] k.cu";
const Names kSomeNames = {"sm_80",       "sm_90a",       "sm_100f",    "sm_120",
                          "compute_90a", "compute_100f", "compute_120"};

}  // namespace

TEST(DeviceCodeIn, ReadsABareFatbin) {
    const ElfWorld world;
    const std::string path = world.text(
        "a.fatbin", fatbin(image(2, 80) + image(2, 90, 0x100011) + image(2, 90, 0x102011) +
                           image(2, 100, 0x1208011) + image(1, 90, 0x8011, "", 0x80004) +
                           image(8, 75) + image(16, 77) + image(2, 0)));
    const std::vector<DeviceCode> code = device_code_in(path);
    ASSERT_EQ(code.size(), 5U);
    EXPECT_EQ(names(code), (Names{"sm_80", "sm_90a", "sm_100f", "compute_90", "lto_75"}));
    const auto ptx = std::find_if(code.begin(), code.end(), [](const auto& c) { return c.ptx; });
    EXPECT_EQ(ptx->ptx_version, "8.4");
    EXPECT_EQ(device_code_words(code),
              "sm_80 sm_90a sm_100f (SASS), compute_90 (PTX), lto_75 (LTO-IR)");
}

TEST(DeviceCodeIn, ReadsPtxText) {
    const ElfWorld world;
    const auto read = [&world](const std::string& text) {
        return device_code_in(world.text("a.ptx", text));
    };
    const auto code = read(
        "//\n// .version 1.0\n/* .target sm_10\n*/ .version 8.4\n"
        ".target sm_90a, texmode_independent\n.address_size 64\n");
    ASSERT_EQ(code.size(), 1U);
    EXPECT_EQ(code[0], (DeviceCode{true, 90, "a", false, "8.4", false}));
    EXPECT_EQ(names(read("\n\n.version 9.0 .target sm_100f")), Names{"compute_100f"});
    EXPECT_TRUE(read(".version 9.0\n.entry x").empty());
    EXPECT_TRUE(read("a text that has .version 9.0 .target sm_90").empty());
    EXPECT_TRUE(read(".version 9.0\n.target sm_").empty());
    EXPECT_TRUE(read("").empty());
}

TEST(DeviceCodeIn, HasNothingToTellOfOtherFiles) {
    const ElfWorld world;
    EXPECT_TRUE(device_code_in("/nonexistent").empty());
    EXPECT_TRUE(device_code_in(world.path()).empty());
    EXPECT_TRUE(device_code_in("/bin/sh").empty());
    EXPECT_TRUE(device_code_in(world.text("x", "something else")).empty());
}

TEST(DeviceCodeIn, ReadsWhatIsThereOfAFatbinThatIsCutOff) {
    const ElfWorld world;
    const std::string whole = fatbin(image(2, 80) + image(2, 90));
    EXPECT_EQ(names(device_code_in(world.text("a", whole))), (Names{"sm_80", "sm_90"}));
    EXPECT_EQ(names(device_code_in(world.text("b", whole.substr(0, whole.size() - 40)))),
              Names{"sm_80"});
    EXPECT_TRUE(device_code_in(world.text("c", whole.substr(0, 40))).empty());
}

TEST(DeviceCodeIn, EndsWhateverTheLengthsSay) {
    const ElfWorld world;
    std::string endless = fatbin(image(2, 80) + image(2, 90));
    endless.replace(16 + 4, 4, bytes_of(0, 4));  // a header without a length
    EXPECT_TRUE(device_code_in(world.text("a", endless)).empty());
    std::string huge = fatbin(image(2, 80) + image(2, 90));
    huge.replace(16 + 8, 8, bytes_of(UINT64_MAX, 8));  // a payload beyond every address
    huge.replace(8, 8, bytes_of(UINT64_MAX, 8));
    EXPECT_EQ(names(device_code_in(world.text("b", huge))), Names{"sm_80"});
}

TEST(DeviceCodeAt, ReadsTheOneImageAtAnOffset) {
    const ElfWorld world;
    const std::string first = fatbin(image(2, 80));
    const std::string text = ".version 8.4\n.target sm_75\n";
    const std::string path =
        world.text("a", first + fatbin(image(2, 90)) + text + std::string(1, '\0') + "x");
    EXPECT_EQ(names(device_code_at(path, 0)), Names{"sm_80"});
    EXPECT_EQ(names(device_code_at(path, first.size())), Names{"sm_90"});
    EXPECT_EQ(names(device_code_at(path, 2 * first.size())), Names{"compute_75"});
    EXPECT_TRUE(device_code_at(path, 8).empty());
    EXPECT_TRUE(device_code_at(path, 1U << 20).empty());
    EXPECT_TRUE(device_code_at(path, UINT64_MAX).empty());
}

TEST(DeviceCodeAt, FollowsTheRelocatedPointerOfAWrapper) {
    const ElfWorld world;
    std::string bytes;
    for (const char c : fatbin(image(2, 86))) {
        bytes += std::to_string(static_cast<unsigned char>(c)) + ",";
    }
    const std::string source =
        "__attribute__((section(\".nv_fatbin\"), aligned(8))) const unsigned char SCOPE f[] = {" +
        bytes +
        "};\nstruct w { int magic, version; const void *data, *more; };\n"
        "__attribute__((section(\".nvFatBinSegment\"), used)) struct w v = {0x466243b1, 1, f, "
        "0};\n";

    // Relative and symbolic relocations of a library, DT_RELR, and a program at a fixed address.
    struct Way {
        const char* name;
        const char* scope;
        const char* flags;
        bool program;
    };

    for (const Way& way :
         {Way{"relative.so", "static", "", false}, Way{"symbolic.so", "", "", false},
          Way{"relr.so", "static", "-Wl,-z,pack-relative-relocs", false},
          Way{"fixed", "static", "-no-pie", true}}) {
        SCOPED_TRACE(way.name);
        std::string text = source;
        text.replace(text.find("const unsigned char SCOPE"), 25,
                     std::string{way.scope} + " const unsigned char");
        const LibraryRecipe recipe{
            {}, "", "-", text + (way.program ? "int main(void) { return 0; }" : ""), way.flags};
        const std::string path =
            way.program ? world.program(way.name, recipe) : world.library(way.name, recipe);
        EXPECT_EQ(names(device_code_in(path)), Names{"sm_86"});
        std::ifstream stream(path, std::ios::binary);
        const std::string file{std::istreambuf_iterator<char>(stream),
                               std::istreambuf_iterator<char>()};
        const std::size_t wrapper = file.find(bytes_of(0x466243b1, 4) + bytes_of(1, 4));
        ASSERT_NE(wrapper, std::string::npos);
        EXPECT_EQ(names(device_code_at(path, wrapper)), Names{"sm_86"});
    }
}

TEST(DeviceCodeIn, AgreesWithNvccOnEveryKindOfFile) {
    if (!has_nvcc()) {
        GTEST_SKIP() << "no nvcc in " << kToolkit;
    }
    const NvccWorld world;
    // Each architecture is a compilation of seconds: all of them only where they matter.
    const std::string few = "-gencode arch=compute_90a,code=[sm_90a,compute_90a] k.cu";
    std::vector<std::string> made = {world.make(kSome, "program")};
    EXPECT_EQ(names(device_code_in(made.front())), kSomeNames);
    for (const auto& [what, output] : std::vector<std::pair<std::string, std::string>>{
             {"-shared -Xcompiler -fPIC -cudart shared ", "library.so"},
             {"-c ", "object.o"},
             {"-fatbin ", "a.fatbin"},
             {"-fatbin -no-compress ", "plain.fatbin"},
             {"-fatbin -compress-mode=size ", "zstd.fatbin"},
             {"-fatbin -compress-mode=speed ", "lz4.fatbin"},
             {"-fatbin -G ", "debug.fatbin"},
             {"-rdc=true -c ", "relocatable.o"}}) {
        made.push_back(world.make(what + few, output));
        EXPECT_EQ(names(device_code_in(made.back())), (Names{"sm_90a", "compute_90a"})) << output;
    }
    for (const DeviceCode& code : device_code_in(made.back())) {
        EXPECT_TRUE(code.relocatable);
    }
    for (const DeviceCode& code : device_code_in(made.front())) {
        EXPECT_EQ(code.ptx_version.empty(), !code.ptx) << code.name();
        EXPECT_FALSE(code.relocatable);
    }
    const std::string linked =
        world.make("-gencode arch=compute_90a,code=sm_90a -dlink relocatable.o", "linked.o");
    EXPECT_EQ(names(device_code_in(linked)), Names{"sm_90a"});
    for (const char* arch : {"sm_90", "sm_100f", "sm_120a"}) {
        EXPECT_EQ(
            names(device_code_in(world.make(std::string{"-cubin k.cu -arch="} + arch, "a.cubin"))),
            Names{arch});
    }
    EXPECT_EQ(names(device_code_in(world.make("-ptx -arch=sm_100f k.cu", "a.ptx"))),
              Names{"compute_100f"});
    EXPECT_EQ(names(device_code_in(world.make(
                  "-fatbin -rdc=true -gencode arch=compute_90,code=lto_90 k.cu", "lto.fatbin"))),
              Names{"lto_90"});
    if (cuobjdump().empty()) {
        return;  // nvcc has agreed; with CUDIAG_CUOBJDUMP its list is held against ours as well
    }
    made.push_back(linked);
    for (const std::string& file : made) {
        EXPECT_EQ(as_listed(device_code_in(file), true), listed(file)) << file;
    }
}

// Of every library in a directory; run by scenario/model/device_code_agrees_with_cuobjdump.
TEST(DeviceCodeIn, AgreesWithCuobjdumpOnTheLibrariesOfWheels) {
    const char* wheels = std::getenv("CUDIAG_WHEELS");
    if (wheels == nullptr || cuobjdump().empty()) {
        GTEST_SKIP() << "CUDIAG_WHEELS names no directory, or there is no cuobjdump";
    }
    std::size_t compared = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             wheels, std::filesystem::directory_options::follow_directory_symlink)) {
        const std::string name = entry.path().filename();
        if (name.find(".so") == std::string::npos || !entry.is_regular_file()) {
            continue;
        }
        bool whole = true;
        const Names theirs = listed(entry.path(), &whole);
        const Names ours = as_listed(device_code_in(entry.path()), false);
        if (whole) {
            EXPECT_EQ(ours, theirs) << entry.path();
            compared += theirs.empty() ? 0 : 1;
        } else {
            EXPECT_TRUE(std::includes(ours.begin(), ours.end(), theirs.begin(), theirs.end()))
                << entry.path();
        }
    }
    EXPECT_GT(compared, 0U) << "none of the libraries in " << wheels << " has device code";
    std::printf("%zu libraries with device code\n", compared);
}

TEST(RunsOn, FollowsNvidiasRules) {
    const auto sass = [](int sm, const char* variant = "") {
        return DeviceCode{false, sm, variant, false, "", false};
    };
    const auto ptx = [](int sm, const char* variant = "") {
        return DeviceCode{true, sm, variant, false, "8.4", false};
    };
    EXPECT_EQ(runs_on(sass(80), 80), Runs::as_it_is);
    EXPECT_EQ(runs_on(sass(80), 86), Runs::as_it_is);
    EXPECT_EQ(runs_on(sass(86), 80), Runs::no);
    EXPECT_EQ(runs_on(sass(80), 90), Runs::no);
    EXPECT_EQ(runs_on(sass(90, "a"), 90), Runs::as_it_is);
    EXPECT_EQ(runs_on(sass(100, "a"), 103), Runs::no);
    EXPECT_EQ(runs_on(sass(100, "f"), 103), Runs::as_it_is);
    EXPECT_EQ(runs_on(sass(103, "f"), 100), Runs::no);
    EXPECT_EQ(runs_on(sass(100, "f"), 120), Runs::no);
    EXPECT_EQ(runs_on(ptx(80), 120), Runs::after_jit);
    EXPECT_EQ(runs_on(ptx(90), 86), Runs::no);
    EXPECT_EQ(runs_on(ptx(90, "a"), 100), Runs::no);
    EXPECT_EQ(runs_on(ptx(90, "a"), 90), Runs::after_jit);
    EXPECT_EQ(runs_on(ptx(100, "f"), 103), Runs::after_jit);
    EXPECT_EQ(runs_on(ptx(100, "f"), 120), Runs::no);
    // Orin and others.
    EXPECT_EQ(runs_on(sass(87), 87), Runs::as_it_is);
    EXPECT_EQ(runs_on(sass(80), 87), Runs::not_promised);
    EXPECT_EQ(runs_on(sass(87), 89), Runs::not_promised);
    EXPECT_EQ(runs_on(sass(101), 110), Runs::not_promised);
    EXPECT_EQ(runs_on(DeviceCode{false, 90, "", true, "", false}, 90), Runs::not_promised);
}

}  // namespace cudiag
