#include "diagnose/build/words.h"

#include <gtest/gtest.h>

#include "diagnose/units.h"
#include "tests/unit/diagnose/loader/elf_world.h"

namespace cudiag {
namespace {

using Words = std::vector<std::string>;

TEST(SplitWords, LeaveEmptyPiecesOut) {
    EXPECT_EQ(split("/a:/b::/c:", ':'), (Words{"/a", "/b", "/c"}));
    EXPECT_EQ(split("", ':'), Words{});
    EXPECT_EQ(split("::", ':'), Words{});
}

TEST(ShellWords, AreTakenAsAShellTakesThem) {
    EXPECT_EQ(shell_words("ccache  /usr/bin/nvcc\t-c"), (Words{"ccache", "/usr/bin/nvcc", "-c"}));
    EXPECT_EQ(shell_words("'a b'\"c d\" e"), (Words{"a bc d", "e"}));
    EXPECT_EQ(shell_words("a\\ b '\\' \"\\\"$x\""), (Words{"a b", "\\", "\"$x"}));
    EXPECT_EQ(shell_words("'' \"\""), (Words{"", ""}));
    EXPECT_EQ(shell_words("  "), Words{});
    EXPECT_EQ(shell_words("a 'open quote"), (Words{"a", "open quote"}));
}

TEST(PathWords, KnowTheDirectoryAndTheName) {
    EXPECT_EQ(directory_of("/a/b/c"), "/a/b");
    EXPECT_EQ(directory_of("/c"), "/");
    EXPECT_EQ(directory_of("c"), "");
    EXPECT_EQ(base_name("/a/b/c"), "c");
    EXPECT_EQ(base_name("c"), "c");
    EXPECT_EQ(base_name("/a/"), "");
}

TEST(AbsolutePath, IsPlainWhereThatLeadsToTheSame) {
    EXPECT_EQ(absolute_path("x.cu", "/project"), "/project/x.cu");
    EXPECT_EQ(absolute_path("./a//x.cu", "/project"), "/project/a/x.cu");
    EXPECT_EQ(absolute_path("/b/./x.cu", "/project"), "/b/x.cu");
    EXPECT_EQ(absolute_path("", "/project"), "");
    const ElfWorld world;
    world.text("csrc/x.cu", "");
    world.text("build/y", "");
    EXPECT_EQ(absolute_path("../csrc/x.cu", world.path("build")), world.path("csrc/x.cu"));
}

TEST(AbsolutePath, KeepsAnUpwardStepBehindALinkThatLeadsElsewhere) {
    const ElfWorld world;
    world.text("far/away/csrc/x.cu", "");
    world.text("far/away/build/y", "");
    world.link("build", "far/away/build");
    EXPECT_EQ(absolute_path("../csrc/x.cu", world.path("build")), world.path("build/../csrc/x.cu"));
}

TEST(OptionValues, AreFoundInBothSpellingsAndInOrder) {
    const Words argv{"-I/no", "-I/a", "-I", "/b", "-isystem", "/c", "-I"};
    EXPECT_EQ(values_of(argv, "-I"), (Words{"/a", "/b"})) << "the program itself is no option";
    EXPECT_EQ(values_of(argv, "-isystem"), Words{"/c"});
    EXPECT_EQ(values_of(argv, "-L"), Words{});
    EXPECT_EQ(values_of({}, "-L"), Words{});
}

TEST(ArgumentEnding, IsTheFirstFileOfThatKind) {
    EXPECT_EQ(argument_ending({"x.cu", "-c", "-odd.cu", "a.cpp", "b.cu"}, {".cu", ".cpp"}),
              "a.cpp");
    EXPECT_EQ(argument_ending({"nvcc", "-c"}, {".cu"}), std::nullopt);
    EXPECT_EQ(argument_ending({}, {".cu"}), std::nullopt);
}

TEST(CommandText, IsCutWhereItIsLong) {
    EXPECT_EQ(command_text({"nvcc", "-c", "x.cu"}), "nvcc -c x.cu");
    EXPECT_EQ(command_text({"nvcc", "-c", "x.cu"}, 6), "nvcc - …");
    EXPECT_EQ(command_text({}), "");
}

TEST(BytesText, IsInTheUnitsOfPeople) {
    EXPECT_EQ(bytes_text(1'300'000'000), "1.3 GB");
    EXPECT_EQ(bytes_text(512'000'000), "512 MB");
    EXPECT_EQ(bytes_text(4096), "4096 bytes");
    EXPECT_EQ(bytes_text(0), "0 bytes");
}

}  // namespace
}  // namespace cudiag
