#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "cli/commands.h"
#include "diagnose/embedded.h"
#include "diagnose/say.h"
#include "present/language.h"

namespace cudiag {
namespace {

constexpr std::string_view kExtension = ".md";

// An English one: there is no other of a slug that has none.
bool is_text(std::string_view name) {
    return name.size() > kExtension.size() && name.find('/') == std::string_view::npos &&
           name.substr(name.size() - kExtension.size()) == kExtension;
}

// In the language of the user, else in English.
std::string_view text_of(const std::string& name) {
    const std::string_view text = embedded_file(folder_of(language()) + "/" + name);
    return text.empty() ? embedded_file(name) : text;
}

}  // namespace

std::vector<ExplainedFinding> explained_findings() {
    std::vector<std::string_view> names = embedded_files();
    std::sort(names.begin(), names.end());
    std::vector<ExplainedFinding> findings;
    for (const std::string_view name : names) {
        if (is_text(name)) {
            const std::string_view text = text_of(std::string{name});
            // The first line is "# SLUG: meaning".
            const std::string_view line = text.substr(2, text.find('\n') - 2);
            const std::size_t colon = line.find(": ");
            findings.push_back({line.substr(0, colon), line.substr(colon + 2)});
        }
    }
    return findings;
}

int explain_command(const std::string& slug) {
    if (slug.empty()) {
        for (const auto& [name, meaning] : explained_findings()) {
            fmt::print("{}: {}\n", name, meaning);
        }
        return kNothingFound;
    }
    // A slash would be a folder of ours and no slug.
    const std::string_view text = slug.find('/') == std::string::npos
                                      ? text_of(slug + std::string{kExtension})
                                      : std::string_view{};
    if (text.empty()) {
        complain(say("no finding is called {} (cudiag explain lists them)", slug));
        return kBadUsage;
    }
    fmt::print("{}", text);
    return kNothingFound;
}

}  // namespace cudiag
