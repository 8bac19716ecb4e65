#include "diagnose/elf/elf_file.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <sstream>

#include "../loader/elf_world.h"

namespace cudiag {
namespace {

constexpr const char* kLibc = "/lib/x86_64-linux-gnu/libc.so.6";

std::string bytes_of(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::string output_of(const std::string& command) {
    return run_loader({"/bin/sh", "-c", command}, {"PATH=/usr/bin:/bin", "LC_ALL=C"}, "", 60).out;
}

std::string versioned_library(const ElfWorld& world) {
    world.text("v.map", "V1 { global: f; }; V2 { global: g; local: *; } V1;");
    return world.library("leaf.so", {{},
                                     "",
                                     "libleaf.so.1",
                                     "int f(void){return 1;} int g(void){return 2;}",
                                     "-Wl,--version-script," + world.path("v.map")});
}

}  // namespace

TEST(ReadElf, GivesWhatTheLoaderCaresAbout) {
    const ElfWorld world;
    versioned_library(world);
    const std::string path =
        world.library("top.so", {{"leaf.so"},
                                 "$ORIGIN/x:/y",
                                 "libtop.so.2",
                                 "int f(void); int h(void){return f();} __thread int t[100];",
                                 "-Wl,-z,nodefaultlib -Wl,--build-id=0xabcd123456789abc"});
    const ElfRead read = read_elf(path);
    ASSERT_TRUE(read.file);
    EXPECT_EQ(read.problem, ElfProblem::none);
    EXPECT_EQ(read.file->soname, "libtop.so.2");
    EXPECT_EQ(read.file->needed, std::vector<std::string>{"libleaf.so.1"});
    EXPECT_EQ(read.file->runpath, "$ORIGIN/x:/y");
    EXPECT_FALSE(read.file->rpath);
    EXPECT_TRUE(read.file->no_default_lib());
    EXPECT_FALSE(read.file->executable());
    EXPECT_EQ(read.file->build_id, "abcd123456789abc");
    EXPECT_EQ(read.file->tls_bytes, 400U);
    EXPECT_EQ(read.file->machine, host_machine());
    EXPECT_EQ(read.file->bits, 64U);
    EXPECT_NE(read.file->comment.find("GCC"), std::string::npos);
    ASSERT_EQ(read.file->needed_versions.size(), 1U);
    EXPECT_EQ(read.file->needed_versions[0].file, "libleaf.so.1");
    EXPECT_EQ(read.file->needed_versions[0].version, "V1");
    EXPECT_FALSE(read.file->versioned);
}

TEST(ReadElf, TellsVersionsFromTheBaseDefinition) {
    const ElfWorld world;
    const ElfRead read = read_elf(versioned_library(world));
    ASSERT_TRUE(read.file);
    EXPECT_EQ(read.file->defined_versions, (std::vector<std::string>{"V1", "V2"}));
    EXPECT_EQ(read.file->base_version, "libleaf.so.1");
    EXPECT_TRUE(read.file->versioned);
}

TEST(ReadElf, TellsRpathFromRunpathAndSeesStaticTls) {
    const ElfWorld world;
    const ElfRead read = read_elf(world.library(
        "old.so", {{},
                   "=/a/b",
                   "",
                   "extern __thread int t __attribute__((tls_model(\"initial-exec\"))); int "
                   "h(void){return t;}"}));
    ASSERT_TRUE(read.file);
    EXPECT_EQ(read.file->rpath, "/a/b");
    EXPECT_FALSE(read.file->runpath);
    EXPECT_TRUE(read.file->static_tls());
}

TEST(ReadElf, KnowsAProgramByItsInterpreterAndPieFlag) {
    const ElfWorld world;
    const ElfRead pie = read_elf(world.program("pie", {{}, "", "", "", "-pie -fPIE"}));
    ASSERT_TRUE(pie.file);
    EXPECT_TRUE(pie.file->executable());
    EXPECT_EQ(pie.file->interpreter, host_loader_config().interpreter);
    EXPECT_TRUE(read_elf(world.program("fixed", {{}, "", "", "", "-no-pie"})).file->executable());
}

TEST(ReadElf, ReadsFilesOfOtherMachinesAndClasses) {
    const ElfWorld world;
    std::string bytes = bytes_of(world.library("x.so"));
    bytes[18] = static_cast<char>(EM_AARCH64);
    const ElfRead read = read_elf(world.text("arm.so", bytes));
    ASSERT_TRUE(read.file);
    EXPECT_EQ(machine_name(read.file->machine, read.file->bits), "AArch64, 64-bit");
    try {
        world.library("narrow.so", {{}, "/p", "libn.so.1", "int f(void){return 1;}", "-m32"});
    } catch (const std::exception&) {
        GTEST_SKIP() << "no 32-bit compiler here";
    }
    const ElfRead narrow = read_elf(world.path("narrow.so"));
    ASSERT_TRUE(narrow.file);
    EXPECT_EQ(narrow.file->bits, 32U);
    EXPECT_EQ(machine_name(narrow.file->machine, narrow.file->bits), "i386, 32-bit");
    EXPECT_EQ(narrow.file->soname, "libn.so.1");
    EXPECT_EQ(narrow.file->runpath, "/p");
    EXPECT_TRUE(exports(world.path("narrow.so"), "f"));
}

TEST(ReadElf, SaysWhatAFileIsThatIsNoLibrary) {
    const ElfWorld world;
    const auto problem = [](const std::string& path) { return read_elf(path).problem; };
    EXPECT_EQ(problem(world.path("absent")), ElfProblem::absent);
    EXPECT_EQ(problem(world.path()), ElfProblem::is_directory);
    EXPECT_EQ(problem(world.text("empty", "")), ElfProblem::empty);
    EXPECT_EQ(problem(world.link("loop", "loop")), ElfProblem::unreadable);
    const ElfRead script =
        read_elf(world.text("libm.so", "/* GNU ld script */\nGROUP ( /lib/libm.so.6 )\n"));
    EXPECT_EQ(script.problem, ElfProblem::linker_script);
    EXPECT_EQ(script.detail, "a linker script that begins with '/* GNU ld script */'");
    const ElfRead html = read_elf(world.text("page.so", "<!DOCTYPE html>\n<html>"));
    EXPECT_EQ(html.problem, ElfProblem::not_elf);
    EXPECT_EQ(html.detail, "a text file that begins with '<!DOCTYPE html>'");
    const ElfRead pointer = read_elf(
        world.text("lfs.so", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"));
    EXPECT_EQ(pointer.detail, "a Git LFS pointer: the file itself was never fetched");
    EXPECT_EQ(read_elf(world.text("x.a", "!<arch>\n/               0")).detail,
              "a static library (ar archive)");
}

TEST(ReadElf, SaysHowMuchOfATruncatedFileIsThere) {
    const ElfWorld world;
    const std::string whole = bytes_of(world.library("x.so"));
    const ElfRead tiny = read_elf(world.text("tiny.so", whole.substr(0, 40)));
    EXPECT_EQ(tiny.problem, ElfProblem::truncated);
    EXPECT_EQ(tiny.detail, "needs at least 64 bytes for its header, has 40");
    const ElfRead half = read_elf(world.text("half.so", whole.substr(0, 4000)));
    EXPECT_EQ(half.problem, ElfProblem::truncated);
    EXPECT_NE(half.detail.find("has 4000"), std::string::npos) << half.detail;
    ASSERT_TRUE(half.file);
    EXPECT_EQ(half.file->machine, host_machine());
}

TEST(DynamicSymbols, AreThoseThatNmLists) {
    for (const char* path :
         {"/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"}) {
        if (!std::filesystem::exists(path)) {
            continue;
        }
        std::set<std::string> theirs;
        std::istringstream stream(output_of(std::string("nm -D ") + path));
        for (std::string line; std::getline(stream, line);) {
            theirs.insert(line.substr(line.rfind(' ') + 1));
        }
        ASSERT_GT(theirs.size(), 1000U);
        std::set<std::string> ours;
        for (const DynamicSymbol& symbol : dynamic_symbols(path)) {
            const bool base_hidden = !symbol.defined || symbol.hidden_version;
            // nm prints the symbols that only carry a version's name without it.
            ours.insert(symbol.version.empty() || symbol.name == symbol.version
                            ? symbol.name
                            : symbol.name + (base_hidden ? "@" : "@@") + symbol.version);
        }
        EXPECT_EQ(ours, theirs) << path;
    }
}

TEST(Exports, AgreesWithTheSymbolTableOnEverySymbol) {
    if (!std::filesystem::exists(kLibc)) {
        GTEST_SKIP() << "no " << kLibc;
    }
    std::size_t seen = 0;
    for (const DynamicSymbol& symbol : dynamic_symbols(kLibc)) {
        if (symbol.defined && ++seen % 7 == 0) {
            EXPECT_TRUE(exports(kLibc, symbol.name)) << symbol.name;
            EXPECT_TRUE(exports(kLibc, symbol.name, symbol.version))
                << symbol.name << "@" << symbol.version;
            EXPECT_FALSE(exports(kLibc, symbol.name, "NO_SUCH_VERSION")) << symbol.name;
            EXPECT_FALSE(exports(kLibc, symbol.name + "_no")) << symbol.name;
        }
    }
    EXPECT_GT(seen, 1000U);
}

TEST(Exports, WorksWithEitherHashTableAndNotForUndefinedSymbols) {
    const ElfWorld world;
    for (const char* style : {"sysv", "gnu", "both"}) {
        const std::string name = std::string(style) + ".so";
        const std::string path = world.library(
            name, {{},
                   "",
                   "",
                   "int missing(void); int f(void){return missing();} int g(void){return 2;}",
                   std::string("-Wl,--hash-style=") + style});
        EXPECT_TRUE(exports(path, "f")) << style;
        EXPECT_TRUE(exports(path, "g", "ANY"))
            << style << ": a library without versions satisfies any";
        EXPECT_FALSE(exports(path, "missing")) << style;
        EXPECT_FALSE(exports(path, "")) << style;
    }
}

TEST(Exports, LooksAtTheVersionOfTheSymbol) {
    const ElfWorld world;
    const std::string path = versioned_library(world);
    EXPECT_TRUE(exports(path, "f", "V1"));
    EXPECT_FALSE(exports(path, "f", "V2"));
    EXPECT_TRUE(exports(path, "g", "V2"));
}

TEST(FindString, GivesTheStringThatBeginsSo) {
    const ElfWorld world;
    const std::string path = world.library(
        "x.so",
        {{},
         "",
         "",
         "const char* text(void){return \"xLIB version 1\\0LIB version 2.3+cuda12\\nmore\";}"});
    EXPECT_EQ(find_string(path, "LIB version "), "LIB version 2.3+cuda12");
    EXPECT_EQ(find_string(path, "LIB version ", 14), "LIB version 2.");
    EXPECT_EQ(find_string(path, "no such text"), "");
    EXPECT_EQ(find_string(world.text("text", "LIB version 1"), "LIB"), "");
}

TEST(Demangle, GivesTheCxxNameOrTheNameItself) {
    EXPECT_EQ(demangle("_ZN3c105ErrorC1ESs"), "c10::Error::Error(std::string)");
    EXPECT_EQ(demangle("ncclCommResume"), "ncclCommResume");
    EXPECT_EQ(demangle("_Znonsense"), "_Znonsense");
    EXPECT_EQ(demangle(std::string("_Z") + std::string(100000, 'N')).size(), 100002U);
}

// Every byte of the headers and tables of a small library in turn takes hostile values; nothing may
// crash or hang.
TEST(HostileBytes, AnywhereInTheFileDoNoHarm) {
    const ElfWorld world;
    const std::string whole = bytes_of(versioned_library(world));
    std::mt19937 random(20261201);
    const int memory = memfd_create("hostile.so", MFD_CLOEXEC);
    const std::string path = "/proc/self/fd/" + std::to_string(memory);
    const auto look = [&](const std::string& bytes) {
        ASSERT_EQ(ftruncate(memory, 0), 0);
        ASSERT_EQ(pwrite(memory, bytes.data(), bytes.size(), 0),
                  static_cast<ssize_t>(bytes.size()));
        read_elf(path);
        dynamic_symbols(path);
        exports(path, "f", "V1");
        find_string(path, "V1");
    };
    for (std::size_t at = 4; at < std::min<std::size_t>(whole.size(), 0x600); at += 3) {
        for (const char value : {'\x00', '\x7f', '\xff'}) {
            std::string bytes = whole;
            bytes[at] = value;
            look(bytes);
        }
    }
    for (int round = 0; round < 500; ++round) {
        std::string bytes = whole.substr(0, random() % whole.size());
        for (int i = 0; i < 8 && bytes.size() > 4; ++i) {
            bytes[4 + random() % (bytes.size() - 4)] = static_cast<char>(random());
        }
        look(bytes);
    }
    close(memory);
}

}  // namespace cudiag
