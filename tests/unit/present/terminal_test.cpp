#include "present/terminal.h"

#include <gtest/gtest.h>

#include "present/finding_json.h"

namespace cudiag {
namespace {

Finding missing_library() {
    Finding finding;
    finding.id = "7.1";
    finding.slug = "loader-missing-library";
    finding.title = "libcudart.so.12, needed by _C.so, is in no directory searched";
    finding.pid = 7;
    finding.argv = {"python", "train.py"};
    finding.evidence["error"] =
        "libcudart.so.12: cannot open shared object file: No such file or directory";
    finding.evidence["library"] = "libcudart.so.12";
    finding.evidence["chain"] = {"/s/_C.so"};
    finding.evidence["searched"] = {
        {{"dir", "/s/lib"}, {"why", "DT_RUNPATH of /s/_C.so"}, {"result", "absent"}}};
    finding.evidence["near_misses"] = {
        {{"path", "/n/libcudart.so.13"}, {"version", "13.0"}, {"why", "another ABI"}}};
    finding.python = {{"train.py", 42, "main"}};
    finding.fixes = {{"bring it", "pip install 'nvidia-cuda-runtime-cu12==12.*'", true}};
    finding.limits = "none worth telling";
    return finding;
}

Finding consequence() {
    Finding finding;
    finding.id = "7.2";
    finding.slug = "hidden-cause";
    finding.title = "the error shown is a consequence";
    finding.evidence["visible_error"] = "RuntimeError: operator torchvision::nms does not exist";
    return finding;
}

TEST(TerminalBlock, TellsCauseWhereSearchNearMissFixAndLimits) {
    const std::string text = render_findings({missing_library()}, Style{}, "/runs/x");
    for (const char* part : {"loader-missing-library", "is in no directory searched",
                             "train.py:42 in main", "/s/_C.so → libcudart.so.12", "/s/lib",
                             "DT_RUNPATH of _C.so", "/n/libcudart.so.13 (13.0): another ABI",
                             "[proved]", "$ pip install 'nvidia-cuda-runtime-cu12==12.*'\n",
                             "none worth telling", "cudiag explain loader-missing-library"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
    }
}

TEST(TerminalBlock, TellsWhichThreadsHadAnException) {
    Finding finding = missing_library();
    finding.evidence = {
        {"exceptions",
         {{{"kernel", "axpy"},
           {"place", "axpy+0xa0"},
           {"source", "/src/a.cu:26"},
           {"block_index", "(2, 0, 0)"},
           {"thread_index", "(3, 0, 0)"},
           {"threads", 32},
           {"meaning", "an assert() failed"}},
          {{"kernel", "other"}, {"threads", 0}, {"meaning", "its stack overflowed"}}}}};
    const std::string text = render_findings({finding}, Style{}, "");
    for (const char* part : {"exception   axpy+0xa0 (/src/a.cu:26), block (2, 0, 0), thread (3, 0, "
                             "0) and 31 more: an assert()",
                             " other: its stack overflowed\n"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
    }
}

TEST(TerminalBlock, FoldsConsequencesIntoTheirCause) {
    Finding cause = missing_library();
    cause.cause_of = {"7.2"};
    const std::string text = render_findings({cause, consequence()}, Style{}, "");
    EXPECT_NE(text.find("led to      the error shown: RuntimeError: operator torchvision::nms"),
              std::string::npos)
        << text;
    EXPECT_EQ(text.find("cudiag:", 1), std::string::npos) << "a second block:\n" << text;
}

TEST(TerminalBlock, SurvivesFindingsThatCauseEachOther) {
    Finding a = missing_library();
    Finding b = consequence();
    a.cause_of = {"7.2"};
    b.cause_of = {"7.1"};
    EXPECT_NO_THROW((void)render_findings({a, b}, Style{}, ""));
}

TEST(TerminalBlock, HasNoEscapeSequencesWithoutColour) {
    EXPECT_EQ(render_findings({missing_library()}, Style{}, "").find('\033'), std::string::npos);
    EXPECT_NE(render_findings({missing_library()}, Style{true, 100}, "").find('\033'),
              std::string::npos);
}

TEST(TerminalBlock, NeverWrapsACommandThatIsToBePasted) {
    Finding finding = missing_library();
    finding.fixes[0].command = "export LD_LIBRARY_PATH=" + std::string(300, 'x');
    EXPECT_NE(render_findings({finding}, Style{}, "").find(finding.fixes[0].command + "\n"),
              std::string::npos);
}

TEST(TerminalBlock, TellsNumbersAsPeopleReadThem) {
    Finding finding = missing_library();
    finding.evidence = {
        {"limit_bytes", 1'500'000'000}, {"needed_bytes", 0},   {"tls_bytes", 2048},
        {"oom_kill_before", 1},         {"oom_kill_after", 2}, {"needed_by", "/b/fused.so"}};
    for (int i = 0; i < 11; ++i) {
        finding.evidence["path"].push_back("/p" + std::to_string(i));
    }
    const std::string text = render_findings({finding}, Style{}, "");
    for (const char* part :
         {"limit       1.5 GB\n", "tls         2048 bytes\n", "oom kill    1 → 2\n",
          "needed by   /b/fused.so\n", "/p7, … and 3 more\n"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
    }
    for (const char* part : {" 0 bytes", "before", "after", "/p8"}) {
        EXPECT_EQ(text.find(part), std::string::npos) << part << "\nis in\n" << text;
    }
}

TEST(Printable, LetsNoControlByteThrough) {
    EXPECT_EQ(printable("a\033[31mb\n"), "a\\x1b[31mb\\x0a");
    EXPECT_EQ(printable("Zürich"), "Zürich");
}

TEST(Wrapped, KeepsEveryWord) {
    EXPECT_EQ(wrapped("one two three", 100, 4), "one two three");
    EXPECT_EQ(wrapped("aaaaaaaaaaaaaaa bbbbbbbbbbbbbbb", 24, 2),
              "aaaaaaaaaaaaaaa\n  bbbbbbbbbbbbbbb");
}

TEST(FindingJson, ComesBackAsItWas) {
    Finding finding = missing_library();
    finding.cause_of = {"7.2"};
    const auto json = to_json(finding);
    EXPECT_EQ(to_json(finding_from_json(json)), json);
}

TEST(FindingJson, HasEveryKeyOfTheContract) {
    const auto json = to_json(missing_library());
    for (const char* key :
         {"schema", "id", "slug", "severity", "confidence", "title", "time_ns", "host", "rank",
          "pid", "tid", "argv", "evidence", "where", "fixes", "cause_of", "limits"}) {
        EXPECT_TRUE(json.contains(key)) << key;
    }
}

TEST(FindingJson, ReadsForeignJsonWithoutHarm) {
    for (const char* text : {"{}", R"({"evidence": 3, "fixes": {"a": 1}, "where": [], "pid": "x"})",
                             R"({"fixes": [1, null, {"proved": "yes"}], "argv": [1]})"}) {
        EXPECT_NO_THROW((void)finding_from_json(nlohmann::ordered_json::parse(text))) << text;
    }
}

TEST(FindingJson, ReplacesBytesThatAreNoUtf8) {
    Finding finding = missing_library();
    finding.title = "bad \xff byte";
    EXPECT_NO_THROW((void)json_line(to_json(finding)));
}

TEST(FindingJson, KeepsTheRank) {
    Finding finding = missing_library();
    EXPECT_TRUE(to_json(finding)["rank"].is_null());
    EXPECT_FALSE(finding_from_json(to_json(finding)).rank);
    finding.rank = 0;
    EXPECT_EQ(to_json(finding)["rank"], 0);
    EXPECT_EQ(finding_from_json(to_json(finding)).rank, 0);
}

}  // namespace
}  // namespace cudiag
