#include "present/language.h"

#include <gtest/gtest.h>

#include <map>

namespace cudiag {
namespace {

std::optional<Language> spoken_with(const std::map<std::string, std::string>& environment) {
    return language_by([&](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? std::string{} : found->second;
    });
}

TEST(Language, IsEnglishWhereNothingIsSaid) {
    EXPECT_EQ(spoken_with({}), Language::english);
    EXPECT_EQ(spoken_with({{"LANG", ""}, {"LC_ALL", ""}}), Language::english);
    EXPECT_EQ(spoken_with({{"LANG", "de_DE.UTF-8"}}), Language::english);
    EXPECT_EQ(spoken_with({{"LANG", "C.UTF-8"}}), Language::english);
}

TEST(Language, IsThatOfTheLocaleOfMessages) {
    EXPECT_EQ(spoken_with({{"LANG", "zh_CN.UTF-8"}}), Language::chinese);
    EXPECT_EQ(spoken_with({{"LANG", "zh_CN.utf8"}}), Language::chinese);
    EXPECT_EQ(spoken_with({{"LANG", "zh_SG.UTF-8"}}), Language::chinese);
    EXPECT_EQ(spoken_with({{"LANG", "en_US.UTF-8"}, {"LC_MESSAGES", "zh_CN.UTF-8"}}),
              Language::chinese);
}

TEST(Language, RanksTheVariablesAsSetlocaleDoes) {
    EXPECT_EQ(spoken_with({{"LANG", "zh_CN.UTF-8"}, {"LC_MESSAGES", "en_US.UTF-8"}}),
              Language::english);
    EXPECT_EQ(spoken_with({{"LC_ALL", "C.UTF-8"}, {"LC_MESSAGES", "zh_CN.UTF-8"}}),
              Language::english);
    EXPECT_EQ(spoken_with({{"LC_ALL", "zh_CN.UTF-8"}, {"LC_MESSAGES", "C"}, {"LANG", "C"}}),
              Language::chinese);
}

TEST(Language, IsEnglishWhereTheCharactersCannotBeShown) {
    EXPECT_EQ(spoken_with({{"LANG", "zh_CN.GB18030"}}), Language::english);
    EXPECT_EQ(spoken_with({{"LANG", "zh_CN"}}), Language::english);  // that is GB2312
    EXPECT_EQ(spoken_with({{"LANG", "zh_CN.UTF-8"}, {"LC_CTYPE", "C"}}), Language::english);
    EXPECT_EQ(spoken_with({{"LC_MESSAGES", "zh_CN.UTF-8"}}), Language::english);
    EXPECT_EQ(spoken_with({{"LC_MESSAGES", "zh_CN"}, {"LC_CTYPE", "C.UTF-8"}}), Language::chinese);
}

TEST(Language, OfTraditionalCharactersIsEnglishUnlessAskedFor) {
    EXPECT_EQ(spoken_with({{"LANG", "zh_TW.UTF-8"}}), Language::english);
    EXPECT_EQ(spoken_with({{"LANG", "zh_TW.UTF-8"}, {"CUDIAG_LANG", "zh"}}), Language::chinese);
}

TEST(Language, IsWhatCudiagLangAsksForWhateverTheLocale) {
    EXPECT_EQ(spoken_with({{"CUDIAG_LANG", "zh"}, {"LC_ALL", "C"}}), Language::chinese);
    EXPECT_EQ(spoken_with({{"CUDIAG_LANG", "zh_CN.UTF-8"}}), Language::chinese);
    EXPECT_EQ(spoken_with({{"CUDIAG_LANG", "zh-Hans"}}), Language::chinese);
    EXPECT_EQ(spoken_with({{"CUDIAG_LANG", "en"}, {"LANG", "zh_CN.UTF-8"}}), Language::english);
    EXPECT_EQ(spoken_with({{"CUDIAG_LANG", ""}, {"LANG", "zh_CN.UTF-8"}}), Language::chinese);
}

TEST(Language, ThatThereIsNotIsNoLanguage) {
    EXPECT_EQ(spoken_with({{"CUDIAG_LANG", "fr"}}), std::nullopt);
    EXPECT_EQ(spoken_with({{"CUDIAG_LANG", "zhx"}}), std::nullopt);
}

}  // namespace
}  // namespace cudiag
