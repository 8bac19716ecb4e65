// What was said (diagnose/say.h), in the language of the user.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/say.h"
#include "present/language.h"

namespace cudiag {

// The sentence, with the sentences in it; words of others, names and what has no translation as
// they are.
std::string spoken(const std::string& sentence, Language language = cudiag::language());

// Of the left column: a name of evidence with spaces for underscores, or a word of our own.
std::string spoken_label(const std::string& label, Language language = cudiag::language());

// All that must be known to tell the sentence in another language later: itself, those in it, and
// those that it consists of, each with how it was made.
std::map<std::string, Said> words_behind(const std::string& sentence);

// `words` with the arguments in the places of {} or {0}; a field's form is not heeded, the
// arguments being texts.
std::string filled(std::string_view words, const std::vector<std::string>& arguments);

}  // namespace cudiag
