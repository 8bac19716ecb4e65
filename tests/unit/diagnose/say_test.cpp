#include "diagnose/say.h"

#include <gtest/gtest.h>

namespace cudiag {
namespace {

TEST(Say, GivesWhatFmtWouldAndRemembersHow) {
    EXPECT_EQ(say("{} is in no directory searched", "libx.so.1"),
              "libx.so.1 is in no directory searched");
    const Said* said = how_said("libx.so.1 is in no directory searched");
    ASSERT_NE(said, nullptr);
    EXPECT_EQ(said->words, "{} is in no directory searched");
    EXPECT_EQ(said->arguments, std::vector<std::string>{"libx.so.1"});
}

TEST(Say, FormatsEachFieldAsItAsks) {
    EXPECT_EQ(say("{0:.1f} of {1:>5}, {0:.0f} {{{1}}}", 2.25, 7), "2.2 of     7, 2 {7}");
    const Said* said = how_said("2.2 of     7, 2 {7}");
    ASSERT_NE(said, nullptr);
    EXPECT_EQ(said->arguments.size(), 2U);
}

TEST(Say, RemembersASentenceWithoutFields) {
    EXPECT_EQ(say("install it again"), "install it again");
    ASSERT_NE(how_said("install it again"), nullptr);
    EXPECT_TRUE(how_said("install it again")->arguments.empty());
}

TEST(Say, KnowsNothingOfOthersWords) {
    EXPECT_EQ(how_said("somebody else's words"), nullptr);
    EXPECT_EQ(how_said(""), nullptr);
}

TEST(Say, LeavesASentenceAloneThatIsOnlyPassedOn) {
    const std::string sentence = say("{} is cut short", "/a/file");
    EXPECT_EQ(say("{}{}", sentence, ""), sentence);
    EXPECT_EQ(how_said(sentence)->words, "{} is cut short");
}

TEST(SayFilled, NumbersTheWordsAsTheyFirstOccur) {
    EXPECT_EQ(say_filled("{b} with {a}: {b}, {c} and {medium: Memory}", {{"a", "1"}, {"b", "2"}}),
              "2 with 1: 2, {c} and {medium: Memory}");
    const Said* said = how_said("2 with 1: 2, {c} and {medium: Memory}");
    ASSERT_NE(said, nullptr);
    EXPECT_EQ(said->words, "{0} with {1}: {0}, {{c}} and {{medium: Memory}}");
    EXPECT_EQ(said->arguments, (std::vector<std::string>{"2", "1"}));
}

TEST(SayKnown, TakesBracesForThemselves) {
    EXPECT_EQ(say_known("emptyDir: {}"), "emptyDir: {}");
    EXPECT_EQ(how_said("emptyDir: {}")->words, "emptyDir: {{}}");
}

TEST(SaidAt, GivesTheLongestFirst) {
    say("it is cut");
    say("it is cut short here");
    const std::vector<std::string> found = said_at("so: it is cut short here", 4);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found.front(), "it is cut short here");
    EXPECT_TRUE(said_at("so: it is cut short here", 5).empty());
}

}  // namespace
}  // namespace cudiag
