// Malformed data is refused here, so that it never reaches a user's run.
#include "diagnose/knowledge/toolchain_tables.h"

#include <gtest/gtest.h>

#include <functional>

namespace cudiag {
namespace {

std::string refusal(const std::function<void()>& read) {
    try {
        read();
    } catch (const KnowledgeError& error) {
        return error.what();
    }
    return {};
}

std::string headers_refused(const std::string& owners, const std::string& rest = "") {
    const std::string json =
        R"({"newest": {"13": "13.0"}, "owners": [)" + owners + "]" + rest + "}";
    return refusal([&json] { static_cast<void>(parse_headers(json)); });
}

std::string toolkits_refused(const std::string& json) {
    return refusal([&json] { static_cast<void>(parse_toolkits(json)); });
}

std::string texts_refused(const std::string& json) {
    return refusal([&json] { static_cast<void>(parse_build_texts(json)); });
}

void expect_says(const std::string& refused, const char* why) {
    EXPECT_NE(refused.find(why), std::string::npos) << "'" << refused << "' says not: " << why;
}

constexpr const char* kOwner =
    R"({"library": "x", "description": "X", "headers": ["x.h"], "links": ["x"], "wheels": [
        {"cuda": "13.x", "pip": "x", "versions": {"13.0": "1"}, "include": "i", "source": "s"}]})";

// An owner with this in it besides the required.
std::string owner(const std::string& more) {
    return R"({"library": "y", "description": "Y", )" + more + "}";
}

std::string wheel(const std::string& more) {
    return owner(R"("headers": ["y.h"], "wheels": [{"cuda": "13.x", "pip": "y", "include": "i", )" +
                 more + "}]");
}

TEST(ParseHeaders, ReadsWhatItIsGiven) {
    const HeaderTable table =
        parse_headers(std::string{R"({"newest": {"13": "13.0"}, "owners": [)"} + kOwner + "]}");
    ASSERT_EQ(table.owners.size(), 1U);
    EXPECT_EQ(table.by_header.at("x.h"), &table.owners.front());
    EXPECT_EQ(table.linkables.at("x").owner, &table.owners.front());
    EXPECT_EQ(table.owners.front().source, "s");
}

TEST(ParseHeaders, PrefersTheNameToTheLongestDirectoryToOthers) {
    const HeaderTable table = parse_headers(R"({"owners": [
        {"library": "a", "description": "A", "headers": ["d/"], "source": "s",
         "providers": [{"manager": "apt", "package": "a"}]},
        {"library": "b", "description": "B", "headers": ["d/e/"], "source": "s",
         "providers": [{"manager": "apt", "package": "b"}]},
        {"library": "c", "description": "C", "headers": ["d/e/f.h"], "source": "s",
         "providers": [{"manager": "apt", "package": "c"}]}]})");
    EXPECT_EQ(find_header_owner(table, "d/e/f.h")->library, "c");
    EXPECT_EQ(find_header_owner(table, "d/e/g/h.h")->library, "b");
    EXPECT_EQ(find_header_owner(table, "d/x.h")->library, "a");
    EXPECT_EQ(find_header_owner(table, "e/f.h"), nullptr);
}

TEST(ParseHeaders, RefusesWhatOccursTwice) {
    expect_says(headers_refused(std::string{kOwner} + "," + kOwner), "'x' occurs twice");
    expect_says(headers_refused(owner(R"("headers": ["y.h", "y.h"], "source": "s",
                    "providers": [{"manager": "apt", "package": "y"}])")),
                "'y.h' occurs twice");
    expect_says(headers_refused(owner(R"("links": ["y", "y"], "source": "s",
                    "providers": [{"manager": "apt", "package": "y"}])")),
                "'-ly' occurs twice");
    expect_says(headers_refused(owner(R"("headers": ["y.h"], "wheels": [
                    {"cuda": "13.x", "pip": "y", "include": "i", "source": "s"},
                    {"cuda": "13.0", "pip": "z", "include": "i", "source": "s"}])")),
                "two wheels of one CUDA");
}

TEST(ParseHeaders, RefusesAnOwnerOfNothing) {
    expect_says(headers_refused(owner(R"("source": "s", "apt": "y", "vendor_source": "s")")),
                "neither 'headers' nor 'links'");
    expect_says(headers_refused(owner(R"("headers": ["y.h"], "source": "s")")), "nor a package");
    expect_says(headers_refused(owner(R"("headers": [""], "source": "s")")), "not a text");
}

TEST(ParseHeaders, RefusesAnEntryWithoutSource) {
    expect_says(headers_refused(owner(R"("headers": ["y.h"], "apt": "y")")), "'vendor_source'");
    expect_says(headers_refused(wheel(R"("spec": "==1")")), "'source'");
    expect_says(headers_refused(owner(R"("headers": ["y.h"],
                    "providers": [{"manager": "apt", "package": "y"}])")),
                "'source'");
}

TEST(ParseHeaders, RefusesAWheelThatContradictsItself) {
    expect_says(headers_refused(wheel(R"("source": "s", "versions": {"12.4": "1"})")),
                "another CUDA");
    expect_says(
        headers_refused(wheel(R"("source": "s", "versions": {"13.0": "1"}, "spec": "==1")")),
        "exclude each other");
    expect_says(headers_refused(wheel(R"("source": "s", "files": ["liby.so.1"])")), "go together");
    expect_says(headers_refused(wheel(R"("source": "s", "colour": "red")")), "unknown key");
    expect_says(headers_refused(owner(R"("headers": ["y.h"], "wheels": [
                    {"cuda": "13", "pip": "y", "include": "i", "source": "s"}])")),
                "names no release");
}

TEST(ParseHeaders, RefusesABoundThatIsNoRelease) {
    expect_says(headers_refused(owner(R"("headers": ["y.h"], "from": "12")")),
                "names no release: 12");
    expect_says(headers_refused(owner(R"("headers": ["y.h"], "to": "new")")), "names no release");
}

TEST(ParseHeaders, RefusesAnUnknownManager) {
    expect_says(headers_refused(owner(R"("headers": ["y.h"], "source": "s",
                    "providers": [{"manager": "brew", "package": "y"}])")),
                "'brew'");
}

TEST(ParseHeaders, RefusesAGroupOfHeadersThatNobodyOwns) {
    expect_says(headers_refused(kOwner, R"(, "groups": [{"name": "g", "included_by": ["a/"],
                    "headers": ["x.h", "z.h"], "why": "w", "source": "s"}])"),
                "nobody owns 'z.h'");
    expect_says(headers_refused(kOwner, R"(, "groups": [{"name": "g", "included_by": [],
                    "headers": ["x.h"], "why": "w", "source": "s"}])"),
                "is empty");
}

TEST(ParseHeaders, RefusesWhatIsNotJson) {
    for (const char* json : {"", "{", "[]", R"({"owners": 7})", R"({"owners": []})"}) {
        EXPECT_NE(refusal([json] { static_cast<void>(parse_headers(json)); }), "") << json;
    }
}

// One release with another range of gcc.
std::string release(
    const std::string& name, const std::string& gcc = "6-11",
    const std::string& more = R"("architectures": ["70"], "standards": ["c++17"])") {
    return R"({"release": ")" + name + R"(", "gcc": ")" + gcc + R"(", "clang": "3-9", )" + more +
           R"(, "source": "s"})";
}

std::string releases(const std::string& list, const std::string& rest = "") {
    return R"({"releases": [)" + list + "]" + rest + "}";
}

TEST(ParseToolkits, ReadsWhatItIsGiven) {
    const ToolkitTable table = parse_toolkits(releases(release("9.2") + "," + release("11.8")));
    ASSERT_EQ(table.releases.size(), 2U);
    EXPECT_EQ(table.releases[1].gcc_oldest, 6);
    EXPECT_EQ(table.releases[1].gcc_newest, 11);
}

TEST(ParseToolkits, RefusesReleasesOutOfOrder) {
    expect_says(toolkits_refused(releases(release("11.8") + "," + release("11.8"))), "twice");
    expect_says(toolkits_refused(releases(release("11.8") + "," + release("9.2"))), "order");
    expect_says(toolkits_refused(releases(release("11"))), "MAJOR.MINOR");
}

TEST(ParseToolkits, RefusesARangeThatIsNone) {
    for (const char* gcc : {"11", "11-6", "-", "a-b", "6-", "-11", "6.1-11"}) {
        expect_says(toolkits_refused(releases(release("11.8", gcc))), "no range");
    }
}

TEST(ParseToolkits, RefusesArchitecturesInAnotherForm) {
    expect_says(toolkits_refused(releases(release(
                    "11.8", "6-11", R"("architectures": ["sm_70"], "standards": ["c++17"])"))),
                "'sm_70'");
    expect_says(toolkits_refused(releases(
                    release("11.8", "6-11", R"("architectures": [], "standards": ["c++17"])"))),
                "is empty");
}

TEST(ParseToolkits, RefusesAPairWithoutBoundsOrRemedy) {
    const auto pairs = [](const std::string& pair) {
        return toolkits_refused(releases(release("11.8"), R"(, "bad_pairs": [)" + pair + "]"));
    };
    const std::string rest = R"("a": "nvcc", "b": "gcc", "why": "w", "source": "s")";
    expect_says(pairs(R"({"name": "n", "a_to": "11", )" + rest + "}"), "every other");
    expect_says(pairs(R"({"name": "n", "a_to": "new", "b_to": "1", )" + rest + "}"), "'new'");
    expect_says(pairs(R"({"name": "n", "a_to": "11", "b_to": "1", )" + rest + "}"), "'remedies'");
    const std::string good =
        R"({"name": "n", "a_to": "11", "b_to": "1", "remedies": ["r"], )" + rest + "}";
    EXPECT_EQ(pairs(good), "");
    expect_says(pairs(good + "," + good), "'n' occurs twice");
}

TEST(CompareReleases, GoesByTheNumbersOfTheBound) {
    EXPECT_EQ(compare_releases("11.4.0", "11"), 0);
    EXPECT_EQ(compare_releases("11", "11.4"), -1);
    EXPECT_EQ(compare_releases("2.42", "2.41"), 1);
    EXPECT_EQ(compare_releases("2.5", "2.41"), -1);
    EXPECT_EQ(compare_releases("12.2.0-14", "12.2"), 0);
    EXPECT_EQ(compare_releases("x", "1"), -1);
    EXPECT_EQ(compare_releases("99999999999999999999", "1"), -1);  // no number
}

std::string text(const std::string& more) {
    return R"({"texts": [{"name": "n", "slug": "s", "meaning": "m", "source": "s", )" + more +
           "}]}";
}

TEST(ParseBuildTexts, RefusesAPatternThatMissesItsExample) {
    EXPECT_EQ(texts_refused(text(R"("contains": "a", "pattern": "a", "example": "xay")")), "");
    expect_says(texts_refused(text(R"("contains": "a", "pattern": "b", "example": "xay")")),
                "own example");
    expect_says(texts_refused(text(R"("contains": "b", "pattern": "a", "example": "xay")")),
                "own example");
}

TEST(ParseBuildTexts, RefusesGroupsThatAreNotNamed) {
    expect_says(texts_refused(text(R"j("contains": "a", "pattern": "(a)", "example": "a")j")),
                "'groups'");
    expect_says(
        texts_refused(text(R"("contains": "a", "pattern": "a", "groups": ["g"], "example": "a")")),
        "'groups'");
}

TEST(ParseBuildTexts, RefusesWhatIsNoRegularExpression) {
    expect_says(texts_refused(text(R"("contains": "a", "pattern": "(", "example": "a")")),
                "'pattern'");
}

TEST(ParseBuildTexts, RefusesAnExtensionOfTwoPackages) {
    constexpr const char* kJson = R"({"texts": [], "extensions": [
        {"package": "p", "modules": ["m"], "source": "s"},
        {"package": "q", "modules": ["m"], "source": "s"}]})";
    expect_says(texts_refused(kJson), "'m' occurs twice");
}

TEST(ParseBuildTexts, AnExtensionThatIsNotKnownIsNone) {
    const BuildTextTable table = parse_build_texts(R"j({
        "texts": [{"name": "n", "slug": "s", "meaning": "m", "source": "s", "contains": "no",
                   "pattern": "no (\\w+)", "groups": ["module"], "known_extension": true,
                   "example": "no m"}],
        "extensions": [{"package": "p", "modules": ["m"], "source": "s"}]})j");
    ASSERT_EQ(find_build_texts(table, "E", "no m", {}).size(), 1U);
    EXPECT_TRUE(find_build_texts(table, "E", "no n", {}).empty());
}

}  // namespace
}  // namespace cudiag
