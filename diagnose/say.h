// Sentences for people. Each remembers the words that it was made of, so that present/ can tell it
// in another language, now or when a saved finding is read again
// (docs/decisions/0007-language.md).
#pragma once

#include <fmt/core.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cudiag {

// How a sentence was made.
struct Said {
    std::string words;                   // "{} is in no directory searched"
    std::vector<std::string> arguments;  // as they stand in the sentence
};

// As `say`, of arguments that are packed already.
std::string say_packed(std::string_view words, fmt::format_args arguments);

// The sentence in English, as fmt::format gives it; the compiler checks `words` against the
// arguments. Fields have no fields in them: `{:.1f}`, not `{:{}}`. Not for what is to be pasted.
// Not for several threads at once, nor for a signal handler.
template <typename... Arguments>
std::string say(fmt::format_string<Arguments...> words, Arguments&&... arguments) {
    const fmt::string_view view = words;
    return say_packed({view.data(), view.size()}, fmt::make_format_args(arguments...));
}

// A text of diagnose/knowledge, which stands for itself.
std::string say_known(const std::string& text);

// A text of diagnose/knowledge with its {words} filled in.
std::string say_filled(const std::string& text, const std::map<std::string, std::string>& words);

// Things side by side, each of which may be a sentence itself, as may what stands between them.
std::string say_list(const std::vector<std::string>& things, const std::string& between);

// Nothing if it was not said: somebody else's words, a name, a number. Valid until the next
// sentence is said.
const Said* how_said(const std::string& sentence);

// What was said and stands in the text from `at` on, the longest first: a text is often several
// sentences behind each other.
std::vector<std::string> said_at(const std::string& text, std::size_t at);

// Of a sentence that was said by another process, and kept.
void remember(const std::string& sentence, Said said);

}  // namespace cudiag
