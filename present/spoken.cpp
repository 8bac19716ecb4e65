#include "present/spoken.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "diagnose/embedded.h"

namespace cudiag {
namespace {

using Words = std::unordered_map<std::string, std::string>;

constexpr std::string_view kLabels = "labels.json";

// Of zh/loader.json and the like by the English words; labels, which are words of one or two
// letters too, apart from all others.
struct Translations {
    Words sentences;
    Words labels;
};

Translations read_translations(const std::string& folder) {
    Translations translations;
    for (const std::string_view name : embedded_files()) {
        const bool ours = name.rfind(folder + "/", 0) == 0 && name.size() > 5 &&
                          name.substr(name.size() - 5) == ".json";
        if (!ours) {
            continue;
        }
        const auto file = nlohmann::json::parse(embedded_file(name), nullptr, true, true);
        Words& words = name.substr(folder.size() + 1) == kLabels ? translations.labels
                                                                 : translations.sentences;
        for (const auto& [english, translated] : file.items()) {
            words.emplace(english, translated.get<std::string>());
        }
    }
    return translations;
}

const Translations& translations_of(Language language) {
    static const Translations chinese = read_translations(folder_of(Language::chinese));
    static const Translations none;
    return language == Language::chinese ? chinese : none;
}

std::string found_in(const Words& words, const std::string& english) {
    const auto found = words.find(english);
    return found == words.end() ? english : found->second;
}

// What stands between sentences, and how Chinese writes it.
constexpr std::pair<std::string_view, std::string_view> kBetween[] = {
    {"; ", "；"}, {", ", "，"}, {": ", "："}, {". ", "。"}, {" ", " "}};

// The sentences that make up the text from `at` on, and what stands between them, each as a piece;
// false if anything else is among them, which may be somebody else's words.
bool take_apart(const std::string& text, std::size_t at, std::vector<std::string>& pieces) {
    constexpr std::size_t kMost = 64;  // ours have some five; a recursion needs an end
    if (at == text.size() || pieces.size() == kMost) {
        return at == text.size();
    }
    std::vector<std::string> candidates = said_at(text, at);
    for (const auto& between : kBetween) {
        if (text.compare(at, between.first.size(), between.first) == 0) {
            candidates.emplace_back(between.first);
        }
    }
    for (const std::string& candidate : candidates) {
        pieces.push_back(candidate);
        if (candidate.size() < text.size() && take_apart(text, at + candidate.size(), pieces)) {
            return true;
        }
        pieces.pop_back();
    }
    return false;
}

// A sentence may hold another, and hardly more than three deep; one that holds itself ends here.
std::string spoken_within(const std::string& sentence, Language language, int depth) {
    constexpr int kDeepest = 8;
    const Said* said = how_said(sentence);
    if (depth == kDeepest) {
        return sentence;
    }
    if (said == nullptr) {
        std::vector<std::string> pieces;
        if (!take_apart(sentence, 0, pieces)) {
            return sentence;
        }
        std::string text;
        for (const std::string& piece : pieces) {
            const auto* const between =
                std::find_if(std::begin(kBetween), std::end(kBetween),
                             [&](const auto& each) { return each.first == piece; });
            text += between != std::end(kBetween) ? std::string{between->second}
                                                  : spoken_within(piece, language, depth + 1);
        }
        return text;
    }
    std::vector<std::string> arguments;
    arguments.reserve(said->arguments.size());
    for (const std::string& argument : said->arguments) {
        arguments.push_back(spoken_within(argument, language, depth + 1));
    }
    return filled(found_in(translations_of(language).sentences, said->words), arguments);
}

void add_words_behind(const std::string& sentence, std::map<std::string, Said>& known) {
    if (known.count(sentence) > 0) {
        return;
    }
    std::vector<std::string> parts;
    if (const Said* said = how_said(sentence)) {
        known.emplace(sentence, *said);
        parts = said->arguments;
    } else if (!take_apart(sentence, 0, parts)) {
        return;
    }
    for (const std::string& part : parts) {
        add_words_behind(part, known);
    }
}

}  // namespace

std::string spoken(const std::string& sentence, Language language) {
    return language == Language::english ? sentence : spoken_within(sentence, language, 0);
}

std::string spoken_label(const std::string& label, Language language) {
    return language == Language::english ? label
                                         : found_in(translations_of(language).labels, label);
}

std::map<std::string, Said> words_behind(const std::string& sentence) {
    std::map<std::string, Said> known;
    add_words_behind(sentence, known);
    return known;
}

std::string filled(std::string_view words, const std::vector<std::string>& arguments) {
    std::string text;
    std::size_t next = 0;
    for (std::size_t at = 0; at < words.size(); ++at) {
        const char c = words[at];
        if ((c == '{' || c == '}') && at + 1 < words.size() && words[at + 1] == c) {
            text += c;
            ++at;
        } else if (const auto end = words.find('}', at); c == '{' && end != words.npos) {
            const std::string number{words.substr(at + 1, end - at - 1)};
            const std::size_t index = number.empty() || number.front() == ':'
                                          ? next++
                                          : static_cast<std::size_t>(std::atoi(number.c_str()));
            text += index < arguments.size() ? arguments[index] : "";
            at = end;
        } else {
            text += c;
        }
    }
    return text;
}

}  // namespace cudiag
