// Malformed data is refused here, so that it never reaches a user's run.
#include "diagnose/knowledge/tables.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "diagnose/embedded.h"

namespace cudiag {
namespace {

// The text of the KnowledgeError that `read` throws; "" if it throws none.
std::string refusal(const std::function<void()>& read) {
    try {
        read();
    } catch (const KnowledgeError& error) {
        return error.what();
    }
    return {};
}

std::string libraries_refused(const std::string& json) {
    return refusal([&json] { static_cast<void>(parse_libraries(json)); });
}

// One family whose only release is `release`.
std::string with_release(const std::string& release, const std::string& family = "") {
    return R"({"newest": {"12": "12.9"}, "images": {"12.9": "12.9.1"}, "families": [
        {"library": "x", "file": "libx", "description": "X", )" +
           family + R"( "releases": [)" + release + "]}]}";
}

constexpr const char* kGood =
    R"({"soname": "libx.so.12", "ships": [{"cuda": "12.x", "pip": "x-cu12", "directory": "d", "source": "s"}]})";

TEST(ParseLibraries, ReadsWhatItIsGiven) {
    const LibraryTable table =
        parse_libraries(with_release(kGood, R"("apt": "libx-{major}-{minor}",)"));
    ASSERT_EQ(table.by_soname.size(), 1U);
    const LibraryRelease& release = table.by_soname.begin()->second;
    EXPECT_EQ(release.cuda, "12.x");
    EXPECT_EQ(release.cuda_major, 12);
    ASSERT_EQ(release.providers.size(), 2U);
    EXPECT_EQ(release.providers[1].package, "libx-12-9");
}

TEST(ParseLibraries, RefusesASonameThatOccursTwice) {
    EXPECT_NE(libraries_refused(with_release(std::string{kGood} + "," + kGood))
                  .find("'libx.so.12' occurs twice"),
              std::string::npos);
}

TEST(ParseLibraries, RefusesAReleaseOfAnotherFile) {
    EXPECT_NE(libraries_refused(with_release(R"({"soname": "liby.so.1", "source": "s"})"))
                  .find("is no libx.so"),
              std::string::npos);
}

TEST(ParseLibraries, RefusesAnEntryWithoutSource) {
    EXPECT_NE(libraries_refused(with_release(R"({"soname": "libx.so.1"})")).find("'source'"),
              std::string::npos);
    EXPECT_NE(libraries_refused(with_release(R"({"soname": "libx.so.1", "source": ""})"))
                  .find("'source'"),
              std::string::npos);
}

TEST(ParseLibraries, RefusesAMisspeltKeyAndNamesThePlace) {
    const std::string why =
        libraries_refused(with_release(R"({"soname": "libx.so.1", "source": "s", "sip": 1})"));
    EXPECT_NE(why.find("unknown key 'sip'"), std::string::npos);
    EXPECT_NE(why.find("families[0].releases[0]"), std::string::npos);
}

TEST(ParseLibraries, RefusesAWheelWithoutDirectory) {
    EXPECT_NE(libraries_refused(with_release(R"({"soname": "libx.so.1", "ships": [
                  {"cuda": "12.x", "pip": "x", "source": "s"}]})"))
                  .find("go together"),
              std::string::npos);
}

TEST(ParseLibraries, RefusesACudaReleaseThatItCannotRead) {
    for (const char* cuda : {"twelve", "12", "9.2", ""}) {
        const std::string release = std::string{R"({"soname": "libx.so.1", "ships": [{"cuda": ")"} +
                                    cuda + R"(", "source": "s"}]})";
        EXPECT_NE(libraries_refused(with_release(release)), "") << cuda;
    }
}

TEST(ParseLibraries, RefusesAPlaceholderThatNothingFills) {
    EXPECT_NE(
        libraries_refused(with_release(kGood, R"("apt": "libx-{moon}",)")).find("placeholder left"),
        std::string::npos);
}

TEST(ParseLibraries, RefusesWhatIsNotJson) {
    EXPECT_NE(libraries_refused("{"), "");
    EXPECT_NE(libraries_refused(""), "");
    EXPECT_NE(libraries_refused("[]").find("is not an object"), std::string::npos);
    EXPECT_NE(libraries_refused(R"({"families": 7})").find("not a list"), std::string::npos);
    EXPECT_NE(libraries_refused(R"({"families": [7]})").find("is not an object"),
              std::string::npos);
}

// dlerror.json and symbol_owners.json are read by the loader rules, and named there.
TEST(DataFiles, AllParseAndThoseOfTheRulesNameTheirSources) {
    int files = 0;
    for (const std::string_view name : embedded_files()) {
        if (name.size() < 5 || name.substr(name.size() - 5) != ".json") {
            continue;
        }
        SCOPED_TRACE(std::string{name});
        ++files;
        const std::string_view text = embedded_file(name);
        const auto json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false, true);
        ASSERT_FALSE(json.is_discarded());
        if (json.is_array()) {
            for (const auto& entry : json) {
                EXPECT_FALSE(entry.value("source", "").empty()) << entry;
            }
        }
    }
    EXPECT_GE(files, 5);
}

TEST(ParseTorch, RefusesAReleaseThatOccursTwice) {
    const std::string one = R"({"version": "2.1", "cuda": "12.1", "source": "s"})";
    EXPECT_EQ(parse_torch(R"({"releases": [)" + one + "]}").by_version.size(), 1U);
    EXPECT_NE(refusal([&one] {
                  static_cast<void>(parse_torch(R"({"releases": [)" + one + "," + one + "]}"));
              }).find("occurs twice"),
              std::string::npos);
}

TEST(ParseSymbols, RefusesASymbolOfTwoReleases) {
    constexpr const char* kJson = R"({"libraries": [{"library": "x", "releases": [
        {"version": "1", "symbols": ["f"], "source": "s"}, {"version": "2", "symbols": ["f"], "source": "s"}]}]})";
    EXPECT_NE(refusal([] { static_cast<void>(parse_symbols(kJson)); }).find("'f' occurs twice"),
              std::string::npos);
}

TEST(ParseVersions, RefusesAHintThatHintsAtNothing) {
    EXPECT_NE(refusal([] {
                  static_cast<void>(parse_versions(
                      R"({"libraries": [{"library": "x", "example": "1", "source": "s"}]})"));
              }).find("neither"),
              std::string::npos);
}

TEST(ParseVersions, RefusesAPatternThatIsNoRegularExpression) {
    EXPECT_NE(
        refusal([] {
            static_cast<void>(parse_versions(
                R"({"libraries": [{"library": "x", "symbol_pattern": "(", "example": "1", "source": "s"}]})"));
        }).find("symbol_pattern"),
        std::string::npos);
}

TEST(ParseGnuVersions, RefusesAVersionOfTwoReleases) {
    constexpr const char* kJson =
        R"({"releases": [{"release": "GCC 1", "versions": ["V"], "source": "s"},
        {"release": "GCC 2", "versions": ["V"], "source": "s"}]})";
    EXPECT_NE(
        refusal([] { static_cast<void>(parse_gnu_versions(kJson)); }).find("'V' occurs twice"),
        std::string::npos);
}

}  // namespace
}  // namespace cudiag
