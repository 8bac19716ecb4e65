#include "diagnose/say.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

namespace cudiag {
namespace {

// Some hundred in a run, thousands in the page of a profile; the command ends when it has told
// them.
std::unordered_map<std::string, Said>& memory() {
    static std::unordered_map<std::string, Said> sentences;
    return sentences;
}

// How long they are, the longest first: there are few lengths however many sentences there are, so
// what a text begins with is found by trying each.
std::set<std::size_t, std::greater<>>& lengths() {
    static std::set<std::size_t, std::greater<>> all;
    return all;
}

}  // namespace

std::string say_packed(std::string_view words, fmt::format_args arguments) {
    std::string sentence;
    Said said{std::string{words}, {}};
    if (words.find_first_of("{}") == std::string_view::npos) {
        // Most are such, and many are said for each directory of a search.
        if (memory().try_emplace(said.words, said).second) {
            lengths().insert(said.words.size());
        }
        return said.words;
    }
    std::size_t at = 0;
    std::size_t next = 0;  // of the fields without a number
    while (at < words.size()) {
        const char c = words[at];
        if ((c == '{' || c == '}') && at + 1 < words.size() && words[at + 1] == c) {
            sentence += c;
            at += 2;
            continue;
        }
        if (c != '{') {
            sentence += c;
            ++at;
            continue;
        }
        const std::size_t end = words.find('}', at);
        const std::string_view field = words.substr(at + 1, end - at - 1);
        const std::size_t colon = field.find(':');
        const std::string number{field.substr(0, colon)};
        const std::size_t index =
            number.empty() ? next++ : static_cast<std::size_t>(std::atoi(number.c_str()));
        const std::string_view form =
            colon == std::string_view::npos ? std::string_view{} : field.substr(colon);
        const std::string text = fmt::vformat(fmt::format("{{{}{}}}", index, form), arguments);
        if (said.arguments.size() <= index) {
            said.arguments.resize(index + 1);
        }
        said.arguments[index] = text;
        sentence += text;
        at = end + 1;
    }
    remember(sentence, std::move(said));
    return sentence;
}

std::string say_known(const std::string& text) {
    std::string words;
    for (const char c : text) {
        words += c == '{' || c == '}' ? std::string(2, c) : std::string(1, c);
    }
    remember(text, Said{std::move(words), {}});
    return text;
}

std::string say_filled(const std::string& text, const std::map<std::string, std::string>& words) {
    std::string sentence;
    Said said;
    std::vector<std::string> names;  // of the arguments, which are numbered as they first occur
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text[at] == '{' ? text.find('}', at) : std::string::npos;
        const std::string name =
            end == std::string::npos ? std::string{} : text.substr(at + 1, end - at - 1);
        const auto word = words.find(name);
        if (word == words.end()) {
            sentence += text[at];
            said.words += text[at] == '{' || text[at] == '}' ? std::string(2, text[at])
                                                             : std::string(1, text[at]);
            ++at;
            continue;
        }
        const auto known = std::find(names.begin(), names.end(), name);
        said.words += fmt::format("{{{}}}", known - names.begin());
        if (known == names.end()) {
            names.push_back(name);
            said.arguments.push_back(word->second);
        }
        sentence += word->second;
        at = end + 1;
    }
    remember(sentence, std::move(said));
    return sentence;
}

std::string say_list(const std::vector<std::string>& things, const std::string& between) {
    std::string sentence;
    Said said;
    for (const std::string& thing : things) {
        if (!said.arguments.empty()) {
            sentence += between;
            said.words += "{}";
            said.arguments.push_back(between);
        }
        sentence += thing;
        said.words += "{}";
        said.arguments.push_back(thing);
    }
    remember(sentence, std::move(said));
    return sentence;
}

const Said* how_said(const std::string& sentence) {
    const auto found = memory().find(sentence);
    return found == memory().end() ? nullptr : &found->second;
}

std::vector<std::string> said_at(const std::string& text, std::size_t at) {
    std::vector<std::string> found;
    for (auto length = lengths().lower_bound(text.size() - at); length != lengths().end();
         ++length) {
        std::string beginning = text.substr(at, *length);
        if (memory().count(beginning) > 0) {
            found.push_back(std::move(beginning));
        }
    }
    return found;
}

void remember(const std::string& sentence, Said said) {
    // "{}{}" of a sentence and of nothing is that sentence, whose own words say more.
    const bool is_an_argument =
        std::count(said.arguments.begin(), said.arguments.end(), sentence) > 0;
    if (!sentence.empty() && !is_an_argument) {
        memory()[sentence] = std::move(said);
        lengths().insert(sentence.size());
    }
}

}  // namespace cudiag
