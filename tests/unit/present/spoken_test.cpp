#include "present/spoken.h"

#include <gtest/gtest.h>

#include "diagnose/finding.h"
#include "present/finding_json.h"
#include "present/terminal.h"

namespace cudiag {
namespace {

std::string in_chinese(const std::string& sentence) {
    return spoken(sentence, Language::chinese);
}

TEST(Filled, PutsArgumentsWhereTheTranslationWantsThem) {
    EXPECT_EQ(filled("{1} 中的 {0}", {"a", "b"}), "b 中的 a");
    EXPECT_EQ(filled("{}，{}", {"a", "b"}), "a，b");
    EXPECT_EQ(filled("{:.1f} {{x}}", {"1.5"}), "1.5 {x}");
    EXPECT_EQ(filled("{} {}", {"a"}), "a ");  // a translation that asks for more than there is
    EXPECT_EQ(filled("{ is open", {"a"}), "{ is open");
}

TEST(Spoken, IsTheSentenceItselfInEnglish) {
    const std::string sentence = say("{} does not exist", "/opt/cuda/bin/nvcc");
    EXPECT_EQ(spoken(sentence, Language::english), "/opt/cuda/bin/nvcc does not exist");
    EXPECT_EQ(spoken_label("limits", Language::english), "limits");
}

TEST(Spoken, HasTheWordsOfTheUsersLanguage) {
    EXPECT_EQ(in_chinese(say("{} does not exist", "/opt/cuda/bin/nvcc")),
              "/opt/cuda/bin/nvcc 不存在");
    EXPECT_EQ(spoken_label("limits", Language::chinese), "局限");
}

TEST(Spoken, HasTheSentencesWithinASentence) {
    const std::string place = say("in this {} container", "docker");
    EXPECT_EQ(in_chinese(say("there is no NVIDIA driver {}: no libcuda.so.1{}", place,
                             say(", and no /dev/nvidia* either"))),
              "这个 docker 容器里 没有 NVIDIA 驱动：没有 libcuda.so.1，也没有任何 /dev/nvidia*");
}

TEST(Spoken, HasSentencesBehindEachOther) {
    std::string title = say("{} was killed (SIGKILL)", "cicc");
    title += say(" while it compiled {}", "a.cu");
    const std::string limits =
        title + "; " + say("what a compiler of another source file needs is not known");
    EXPECT_EQ(
        in_chinese(limits),
        "cicc 被杀（SIGKILL），当时它在编译 a.cu；编译另一个源文件的编译器需要多少内存不得而知");
}

TEST(Spoken, LeavesOthersWordsAlone) {
    EXPECT_EQ(in_chinese("libfoo.so: cannot open shared object file"),
              "libfoo.so: cannot open shared object file");
    // A sentence of ours within theirs makes theirs not ours.
    const std::string ours = say("not set");
    EXPECT_EQ(in_chinese("RuntimeError: CUDA_HOME is " + ours),
              "RuntimeError: CUDA_HOME is not set");
    EXPECT_EQ(in_chinese(""), "");
}

TEST(Spoken, OfWhatHasNoTranslationIsEnglishWithItsPartsTranslated) {
    EXPECT_EQ(in_chinese(say("[{}] {}", 7, say("not set"))), "[7] 没有设置");
}

TEST(Spoken, EndsWhereASentenceIsSaidToHoldItself) {
    remember("round and round", Said{"{}!", {"round and round again"}});
    remember("round and round again", Said{"{}?", {"round and round"}});
    EXPECT_FALSE(in_chinese("round and round").empty());
}

TEST(SavedJson, TellsAFindingInAnotherLanguageLater) {
    // As another process kept it: nothing of it was said in this one.
    const auto json = nlohmann::ordered_json::parse(R"({
        "slug": "build-missing-compiler", "severity": "error", "confidence": "certain",
        "title": "/kept/nvcc does not exist: CUDA_HOME=/kept leads to no toolkit",
        "said": {"/kept/nvcc does not exist": ["{} does not exist", "/kept/nvcc"],
                 ": CUDA_HOME=/kept leads to no toolkit": [": CUDA_HOME={} leads to no toolkit", "/kept"],
                 "nonsense": 7, "more": [], "and more": ["{}", 7]}})");
    const Finding finding = finding_from_json(json);
    EXPECT_EQ(in_chinese(finding.title), "/kept/nvcc 不存在：CUDA_HOME=/kept 没有指向任何 toolkit");
    const auto saved = saved_json(finding);
    EXPECT_EQ(saved["said"].size(), 2U);
    EXPECT_FALSE(to_json(finding).contains("said"));
    EXPECT_EQ(saved["title"], json["title"]);  // English, whatever the language
}

TEST(SavedJson, KeepsWhatItsEvidenceAndFixesWereMadeOf) {
    Finding finding;
    finding.title = say("{} is too old for {}{}", say("the driver"), say("this CUDA runtime"), "");
    finding.evidence["container"] = say("none seen");
    finding.evidence["searched"] = {{{"dir", "/lib"}, {"why", say("DT_RUNPATH of {}", "/a.so")}}};
    finding.fixes = {{say("install it"), "apt-get install it", false}};
    const auto said = saved_json(finding)["said"];
    for (const char* sentence :
         {"the driver", "this CUDA runtime", "none seen", "DT_RUNPATH of /a.so", "install it"}) {
        EXPECT_TRUE(said.contains(sentence)) << sentence;
    }
    EXPECT_FALSE(said.contains("apt-get install it"));
}

}  // namespace
}  // namespace cudiag
