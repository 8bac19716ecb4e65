#include "present/language.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>

namespace cudiag {
namespace {

std::string first_of(const std::function<std::string(const char*)>& variable,
                     const char* category) {
    for (const char* name : {"LC_ALL", category, "LANG"}) {
        if (std::string value = variable(name); !value.empty()) {
            return value;
        }
    }
    return "C";
}

// "zh" of "zh_CN.UTF-8@x", "zh-Hans" and "zh".
std::string language_part(const std::string& locale) {
    return locale.substr(0, locale.find_first_of("_-.@"));
}

bool in_utf8(const std::string& locale) {
    const auto dot = locale.find('.');
    if (dot == std::string::npos) {
        return false;  // zh_CN alone is GB2312
    }
    std::string charset = locale.substr(dot + 1, locale.find('@', dot) - dot - 1);
    charset.erase(std::remove(charset.begin(), charset.end(), '-'), charset.end());
    std::transform(charset.begin(), charset.end(), charset.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    return charset == "utf8";
}

bool in_traditional_characters(const std::string& locale) {
    static const std::set<std::string> places{"zh_TW", "zh_HK", "zh_MO"};
    return places.count(locale.substr(0, 5)) > 0;
}

const std::optional<Language>& of_this_process() {
    static const std::optional<Language> ours = language_by([](const char* name) {
        const char* value = std::getenv(name);
        return std::string{value == nullptr ? "" : value};
    });
    return ours;
}

}  // namespace

std::optional<Language> language_by(const std::function<std::string(const char*)>& variable) {
    if (const std::string asked = variable("CUDIAG_LANG"); !asked.empty()) {
        const std::string name = language_part(asked);
        return name == "zh"                                     ? std::optional{Language::chinese}
               : name == "en" || name == "C" || name == "POSIX" ? std::optional{Language::english}
                                                                : std::nullopt;
    }
    const std::string messages = first_of(variable, "LC_MESSAGES");
    return language_part(messages) == "zh" && !in_traditional_characters(messages) &&
                   in_utf8(first_of(variable, "LC_CTYPE"))
               ? Language::chinese
               : Language::english;
}

Language language() {
    return of_this_process().value_or(Language::english);
}

bool language_is_known() {
    return of_this_process().has_value();
}

const char* tag_of(Language language) {
    return language == Language::chinese ? "zh-CN" : "en";
}

std::string folder_of(Language language) {
    return language == Language::chinese ? "zh" : "";
}

}  // namespace cudiag
