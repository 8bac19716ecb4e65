#include "shim/attempts.h"

#include <errno.h>

#include <string>
#include <vector>

#include "tests/unit/shim/in_a_child.h"

namespace cudiag {
namespace {

using testing::in_a_child;

// Where take_attempts, a plain function's caller, puts what it is given.
std::vector<Attempt>& taken() {
    static std::vector<Attempt> attempts;
    return attempts;
}

const std::vector<Attempt>& take() {
    taken().clear();
    take_attempts([](const Attempt& attempt) { taken().push_back(attempt); });
    return taken();
}

TEST(AttemptsTest, TellWhichProgramCouldNotBeStarted) {
    in_a_child([] {
        note_attempt("/opt/gone/nvcc", nullptr, 100);
        note_failed_attempt("/opt/gone/nvcc", 100, ENOENT);
        ASSERT_EQ(take().size(), 1U);
        EXPECT_STREQ(taken()[0].path, "/opt/gone/nvcc");
        EXPECT_EQ(taken()[0].pid, 100);
        EXPECT_EQ(taken()[0].error, ENOENT);
        EXPECT_EQ(taken()[0].places, 1U);
        EXPECT_TRUE(taken()[0].failed);
        EXPECT_TRUE(take().empty()) << "they are told once";
    });
}

TEST(AttemptsTest, AreOneForASearchThroughPath) {
    in_a_child([] {
        for (const char* path : {"/a/gcc", "/b/gcc", "/c/gcc"}) {
            note_attempt(path, nullptr, 100);
            note_failed_attempt(path, 100, ENOENT);
        }
        ASSERT_EQ(take().size(), 1U);
        EXPECT_STREQ(taken()[0].path, "/c/gcc");
        EXPECT_EQ(taken()[0].places, 3U);
    });
}

TEST(AttemptsTest, AreForgottenWhereALaterPlaceHasTheProgram) {
    in_a_child([] {
        note_attempt("/a/gcc", nullptr, 100);
        note_failed_attempt("/a/gcc", 100, ENOENT);
        note_attempt("/b/gcc", nullptr, 100);  // does not come back
        EXPECT_TRUE(take().empty());
        EXPECT_STREQ(attempted_by(100), "/b/gcc");
    });
}

TEST(AttemptsTest, TellTheProgramOfAChildThatFailed) {
    in_a_child([] {
        note_attempt("/usr/bin/g++", nullptr, 100);
        note_attempt("/usr/bin/true", nullptr, 101);
        note_failed_child(100, 1 << 8);
        ASSERT_EQ(take().size(), 1U);
        EXPECT_STREQ(taken()[0].path, "/usr/bin/g++");
        EXPECT_EQ(taken()[0].status, 1 << 8);
        EXPECT_EQ(taken()[0].error, 0);
    });
}

TEST(AttemptsTest, TellOfAFailedChildWhoseProgramNobodySaw) {
    in_a_child([] {
        note_failed_child(100, 9);
        ASSERT_EQ(take().size(), 1U);
        EXPECT_STREQ(taken()[0].path, "");
        EXPECT_EQ(taken()[0].status, 9);
        EXPECT_STREQ(attempted_by(100), "");
    });
}

TEST(AttemptsTest, TellOfCoordinatorsAndTheirArgumentsEvenIfTheyEndedWell) {
    in_a_child([] {
        std::string words[] = {"ninja", "--version"};
        char* arguments[] = {words[0].data(), words[1].data(), nullptr};
        note_attempt("/usr/bin/ninja", arguments, 100);
        note_attempt("/usr/bin/g++", arguments, 101);
        ASSERT_EQ(take().size(), 1U);
        EXPECT_STREQ(taken()[0].path, "/usr/bin/ninja");
        EXPECT_STREQ(taken()[0].arguments, "ninja --version");
        EXPECT_FALSE(taken()[0].failed);
    });
}

TEST(AttemptsTest, CutPathsAndArgumentsThatAreTooLong) {
    in_a_child([] {
        std::string word(1000, 'w');
        char* arguments[] = {word.data(), word.data(), nullptr};
        note_attempt(("/" + std::string(1000, 'd') + "/x").c_str(), nullptr, 100);
        note_failed_child(100, 1 << 8);
        note_attempt("/usr/bin/make", arguments, 101);
        ASSERT_EQ(take().size(), 2U);
        EXPECT_EQ(std::string(taken()[0].path), "/" + std::string(sizeof(Attempt::path) - 2, 'd'));
        EXPECT_EQ(std::string(taken()[1].arguments),
                  std::string(sizeof(Attempt::arguments) - 1, 'w'));
    });
}

TEST(AttemptsTest, LoseTheOldestWhereThereAreMoreThanSlots) {
    in_a_child([] {
        constexpr std::int32_t kSlots = 32;
        constexpr std::int32_t kAttempts = 40;
        for (std::int32_t i = 0; i < kAttempts; ++i) {
            note_failed_attempt(("/x/" + std::to_string(i)).c_str(), 100 + i, ENOENT);
        }
        ASSERT_EQ(take().size(), static_cast<std::size_t>(kSlots));
        for (std::int32_t i = 0; i < kSlots; ++i) {
            const auto& attempt = taken()[static_cast<std::size_t>(i)];
            EXPECT_EQ(attempt.pid, 100 + kAttempts - kSlots + i)
                << "the oldest of those kept first";
        }
        EXPECT_STREQ(attempted_by(100), "");
        EXPECT_TRUE(take().empty());
    });
}

TEST(AttemptsTest, OfChildrenThatNeverCameToBeAreKeptByTheirPrograms) {
    in_a_child([] {
        for (const char* path : {"/usr/bin/gcc", "/usr/bin/gcc", "/usr/bin/nvcc"}) {
            note_attempt(path, nullptr, kNoChild);
            note_failed_attempt(path, kNoChild, EAGAIN);
        }
        ASSERT_EQ(take().size(), 2U);
        EXPECT_STREQ(taken()[0].path, "/usr/bin/gcc");
        EXPECT_EQ(taken()[0].places, 2U);
        EXPECT_EQ(taken()[0].pid, kNoChild);
        EXPECT_STREQ(taken()[1].path, "/usr/bin/nvcc");
        EXPECT_EQ(taken()[1].error, EAGAIN);
    });
}

TEST(AttemptsTest, OfAVforkChildAreKnownToItsParent) {
    in_a_child([] {
        const pid_t child = vfork();
        if (child == 0) {
            // As the hooks of exec do it in a child that shares its parent's memory.
            note_attempt("/opt/gone/ninja", nullptr, getpid());
            note_failed_attempt("/opt/gone/ninja", getpid(), ENOENT);
            _exit(127);
        }
        ASSERT_GT(child, 0);
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        note_failed_child(child, status);
        ASSERT_EQ(take().size(), 1U);
        EXPECT_STREQ(taken()[0].path, "/opt/gone/ninja");
        EXPECT_EQ(taken()[0].pid, child);
        EXPECT_EQ(taken()[0].error, ENOENT);
        EXPECT_EQ(taken()[0].status, 127 << 8);
    });
}

}  // namespace
}  // namespace cudiag
