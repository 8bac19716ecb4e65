// In which language people are told. Only what they read: --json is English whatever the language,
// and so is what is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace cudiag {

enum class Language : std::uint8_t { english, chinese };  // chinese: in simplified characters

// By the variables, "" for one that is not set: CUDIAG_LANG (en, zh, or the name of a locale), else
// the locale of messages as setlocale(3) ranks them (LC_ALL, LC_MESSAGES, LANG) if the character
// set (LC_ALL, LC_CTYPE, LANG) is UTF-8. Traditional characters (zh_TW, zh_HK, zh_MO) are told in
// English unless CUDIAG_LANG asks for zh. Nothing if CUDIAG_LANG names a language that there is
// not.
std::optional<Language> language_by(const std::function<std::string(const char*)>& variable);

// Of this process, by its environment; asked once. English if CUDIAG_LANG names no language.
Language language();

// Does CUDIAG_LANG, if it is set, name a language that there is?
bool language_is_known();

// As HTML names it: "en", "zh-CN".
const char* tag_of(Language language);

// Name of the folder of the language's texts, "zh"; "" for English.
std::string folder_of(Language language);

}  // namespace cudiag
