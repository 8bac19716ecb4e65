#include "diagnose/loader/search_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "elf_world.h"

namespace cudiag {
namespace {

FileDemands demands() {
    FileDemands result;
    result.machine = host_machine();
    return result;
}

}  // namespace

TEST(ACandidateFile, IsTakenWithItsIdentity) {
    const ElfWorld world;
    const Candidate candidate = examine(world.library("x.so"), demands());
    EXPECT_EQ(candidate.verdict, Verdict::usable);
    EXPECT_EQ(candidate.result, "found");
    EXPECT_NE(candidate.inode, 0U);
}

TEST(ACandidateFile, ThatIsAnExecutableIsTakenAsTheProgramOnly) {
    const ElfWorld world;
    const std::string program = world.program("p", {{}, "", "", "", "-no-pie"});
    EXPECT_EQ(examine(program, demands()).error, "cannot dynamically load executable");
    FileDemands as_program = demands();
    as_program.as_program = true;
    EXPECT_EQ(examine(program, as_program).verdict, Verdict::usable);
}

TEST(ACandidateFile, ThatWasStrippedToItsDebugPartIsRejected) {
    const ElfWorld world;
    const std::string library = world.library("x.so", {{}, "", "", "int f(void){return 1;}", "-g"});
    const LoaderRun run = run_loader(
        {"/usr/bin/objcopy", "--only-keep-debug", library, world.path("x.debug")}, {}, "", 20);
    if (!run.started || run.status != 0) {
        GTEST_SKIP() << "no objcopy";
    }
    const Candidate candidate = examine(world.path("x.debug"), demands());
    EXPECT_EQ(candidate.verdict, Verdict::rejected);
    EXPECT_EQ(candidate.error, "object file has no dynamic section");
}

TEST(ACandidateFile, ThatNeedsANewerKernelIsPassedOverByOldLoaders) {
    const ElfWorld world;
    const std::string note =
        "__asm__(\".section .note.ABI-tag,\\\"a\\\",@note\\n.balign 4\\n.long 4,16,1\\n.asciz "
        "\\\"GNU\\\"\\n"
        ".long 0,99,2,3\\n.previous\\n\");";
    const std::string library = world.library("x.so", {{}, "", "", note});
    FileDemands old = demands();
    EXPECT_EQ(examine(library, old).verdict, Verdict::usable);
    old.kernel = 99 << 16 | 2 << 8 | 2;
    EXPECT_EQ(examine(library, old).verdict, Verdict::passed_over);
    EXPECT_EQ(examine(library, old).result, "needs Linux 99.2.3");
    old.kernel = 99 << 16 | 2 << 8 | 3;
    EXPECT_EQ(examine(library, old).verdict, Verdict::usable);
    EXPECT_GT(running_kernel(), 3U << 16);
}

TEST(ACandidateFile, ThatIsAFifoDoesNotHangTheSearch) {
    const ElfWorld world;
    ASSERT_EQ(mkfifo(world.path("fifo.so").c_str(), 0600), 0);
    EXPECT_NE(examine(world.path("fifo.so"), demands()).verdict, Verdict::usable);
    EXPECT_EQ(read_elf(world.path("fifo.so")).problem, ElfProblem::unreadable);
}

}  // namespace cudiag
