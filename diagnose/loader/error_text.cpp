#include "diagnose/loader/error_text.h"

#include <nlohmann/json.hpp>
#include <regex>
#include <utility>
#include <vector>

#include "diagnose/embedded.h"

namespace cudiag {
namespace {

struct Pattern {
    ErrorForm form;
    std::regex regex;
    std::vector<std::string> groups;
};

ErrorForm form_named(const std::string& name) {
    static const std::pair<const char*, ErrorForm> forms[] = {
        {"missing_file", ErrorForm::missing_file},
        {"cannot_open", ErrorForm::cannot_open},
        {"missing_version", ErrorForm::missing_version},
        {"no_version_information", ErrorForm::no_version_information},
        {"undefined_symbol", ErrorForm::undefined_symbol},
        {"wrong_class", ErrorForm::wrong_class},
        {"not_elf", ErrorForm::not_elf},
        {"cannot_map", ErrorForm::cannot_map},
        {"static_tls", ErrorForm::static_tls}};
    for (const auto& [text, form] : forms) {
        if (name == text) {
            return form;
        }
    }
    return ErrorForm::unknown;
}

std::vector<Pattern> load_patterns() {
    std::vector<Pattern> patterns;
    const auto data = nlohmann::json::parse(embedded_file("dlerror.json"), nullptr, true, true);
    for (const auto& entry : data) {
        patterns.push_back({form_named(entry.at("form").get<std::string>()),
                            std::regex{entry.at("pattern").get<std::string>()},
                            entry.at("groups").get<std::vector<std::string>>()});
    }
    return patterns;
}

std::string* part_named(LoaderError& error, const std::string& name) {
    if (name == "subject") {
        return &error.subject;
    }
    if (name == "symbol") {
        return &error.symbol;
    }
    if (name == "version") {
        return &error.version;
    }
    if (name == "provider") {
        return &error.provider;
    }
    return name == "detail" ? &error.detail : nullptr;
}

}  // namespace

LoaderError parse_loader_error(const std::string& text) {
    static const std::vector<Pattern> patterns = load_patterns();
    // std::regex recurses per character: a text of a megabyte would end the process, and no loader
    // text is that long.
    constexpr std::size_t kLongest = 16384;
    LoaderError error;
    error.detail = text;
    if (text.size() > kLongest || text.find('\n') != std::string::npos) {
        return error;
    }
    for (const Pattern& pattern : patterns) {
        std::smatch match;
        if (!std::regex_match(text, match, pattern.regex)) {
            continue;
        }
        error.form = pattern.form;
        error.detail.clear();
        for (std::size_t i = 0; i < pattern.groups.size(); ++i) {
            if (std::string* part = part_named(error, pattern.groups[i])) {
                *part = match[i + 1].str();
            }
        }
        return error;
    }
    return error;
}

}  // namespace cudiag
