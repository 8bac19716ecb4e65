// The Chinese texts of `cudiag explain` against the English ones: all are there, in the same order
// of sections, with the very same commands.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "diagnose/embedded.h"
#include "present/text_width.h"

namespace cudiag {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    std::istringstream stream{std::string{text}};
    for (std::string line; std::getline(stream, line);) {
        lines.push_back(line);
    }
    return lines;
}

bool is_code(const std::string& line) {
    return line.rfind("    ", 0) == 0;
}

// "c" and the line itself for code, since a command is the same in each language; for a heading, an
// item or a row that it is one.
std::vector<std::string> skeleton(std::string_view text) {
    std::vector<std::string> parts;
    for (const std::string& line : lines_of(text)) {
        if (is_code(line)) {
            parts.push_back("c" + line);
        } else if (line.rfind("## ", 0) == 0 || line.rfind("- ", 0) == 0) {
            parts.push_back(line.substr(0, 2));
        } else if (line.rfind("|", 0) == 0) {
            parts.push_back("|" + std::to_string(std::count(line.begin(), line.end(), '|')));
        }
    }
    return parts;
}

// What stands in backticks outside of code, with a line's break as a space.
std::vector<std::string> quoted(std::string_view text) {
    std::string prose;
    for (const std::string& line : lines_of(text)) {
        const auto begin = line.find_first_not_of(' ');
        if (!is_code(line) && begin != std::string::npos) {
            prose += (prose.empty() ? "" : " ") + line.substr(begin);
        }
    }
    std::vector<std::string> spans;
    for (std::size_t at = prose.find('`'); at != std::string::npos; at = prose.find('`', at)) {
        const auto end = prose.find('`', at + 1);
        if (end == std::string::npos) {
            ADD_FAILURE() << "a backtick is not closed: " << prose.substr(at);
            break;
        }
        spans.push_back(prose.substr(at + 1, end - at - 1));
        at = end + 1;
    }
    return spans;
}

// Slug and the two texts.
std::map<std::string, std::pair<std::string_view, std::string_view>> pairs() {
    std::map<std::string, std::pair<std::string_view, std::string_view>> texts;
    for (const std::string_view name : embedded_files()) {
        if (name.size() > 3 && name.substr(name.size() - 3) == ".md") {
            const bool chinese = name.rfind("zh/", 0) == 0;
            auto& pair = texts[std::string{name.substr(chinese ? 3 : 0)}];
            (chinese ? pair.second : pair.first) = embedded_file(name);
        }
    }
    return texts;
}

TEST(ExplainInChinese, EachTextIsThereInBothLanguages) {
    EXPECT_GT(pairs().size(), 50U);
    for (const auto& [slug, texts] : pairs()) {
        EXPECT_FALSE(texts.first.empty()) << slug << " has no English text";
        EXPECT_FALSE(texts.second.empty()) << slug << " has no Chinese text";
    }
}

TEST(ExplainInChinese, SectionsListsAndCommandsAreThoseOfTheEnglishText) {
    for (const auto& [slug, texts] : pairs()) {
        EXPECT_EQ(skeleton(texts.first), skeleton(texts.second)) << slug;
    }
}

TEST(ExplainInChinese, WhatIsQuotedStandsInTheEnglishTextToo) {
    for (const auto& [slug, texts] : pairs()) {
        const std::vector<std::string> english = quoted(texts.first);
        for (const std::string& span : quoted(texts.second)) {
            EXPECT_NE(std::find(english.begin(), english.end(), span), english.end())
                << slug << ": `" << span << "`";
        }
    }
}

TEST(ExplainInChinese, HeadingsAreTranslatedAlikeEverywhere) {
    std::map<std::string, std::string> translation;
    for (const auto& [slug, texts] : pairs()) {
        std::vector<std::string> english;
        std::vector<std::string> chinese;
        for (const std::string& line : lines_of(texts.first)) {
            if (line.rfind("## ", 0) == 0) {
                english.push_back(line);
            }
        }
        for (const std::string& line : lines_of(texts.second)) {
            if (line.rfind("## ", 0) == 0) {
                chinese.push_back(line);
            }
        }
        ASSERT_EQ(english.size(), chinese.size()) << slug;
        for (std::size_t i = 0; i < english.size(); ++i) {
            EXPECT_EQ(translation.emplace(english[i], chinese[i]).first->second, chinese[i])
                << slug;
            EXPECT_NE(english[i], chinese[i]) << slug;
        }
    }
}

TEST(ExplainInChinese, LinesFitThePage) {
    for (const auto& [slug, texts] : pairs()) {
        const std::vector<std::string> lines = lines_of(texts.second);
        ASSERT_FALSE(lines.empty()) << slug;
        EXPECT_EQ(lines.front().rfind("# " + slug.substr(0, slug.size() - 3) + ": ", 0), 0U)
            << slug;
        EXPECT_LE(lines.size(), 90U) << slug;
        for (const std::string& line : lines) {
            EXPECT_LE(text_width(line), 110U) << slug << ": " << line;
        }
    }
}

}  // namespace
}  // namespace cudiag
