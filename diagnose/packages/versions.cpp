// Order of versions: PEP 440, "Summary of permitted suffixes and relative ordering".
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>

#include "diagnose/packages/owner.h"

namespace cudiag {
namespace {

// A suffix's place in the order, and its number: 2.0rc1 -> {rc, 1}.
enum class Stage : signed char { dev, alpha, beta, candidate, release, post };

struct ParsedVersion {
    std::uint64_t epoch = 0;
    std::vector<std::uint64_t> numbers;
    Stage stage = Stage::release;
    std::uint64_t stage_number = 0;
    bool development = false;  // 1.0rc1.dev3 comes before 1.0rc1
    std::uint64_t development_number = 0;
};

bool is_digit(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

std::uint64_t take_number(std::string_view& text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return error == std::errc{} ? number : UINT64_MAX;  // absurdly long numbers are simply large
}

std::string lower(std::string_view text) {
    std::string result;
    for (const char c : text) {
        result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return result;
}

// "1!2.0" in PEP 440, "1:2.0" in Debian.
void take_epoch(std::string_view& text, ParsedVersion& version) {
    std::size_t digits = 0;
    while (digits < text.size() && is_digit(text[digits])) {
        ++digits;
    }
    if (digits > 0 && digits < text.size() && (text[digits] == '!' || text[digits] == ':')) {
        version.epoch = take_number(text);
        text.remove_prefix(1);
    }
}

void take_suffix(std::string_view& text, ParsedVersion& version) {
    struct Word {
        std::string_view text;
        Stage stage;
    };

    constexpr std::array<Word, 10> kWords{{{"alpha", Stage::alpha},
                                           {"beta", Stage::beta},
                                           {"preview", Stage::candidate},
                                           {"pre", Stage::candidate},
                                           {"post", Stage::post},
                                           {"rev", Stage::post},
                                           {"dev", Stage::dev},
                                           {"rc", Stage::candidate},
                                           {"a", Stage::alpha},
                                           {"b", Stage::beta}}};
    for (const Word& word : kWords) {
        if (text.substr(0, word.text.size()) != word.text) {
            continue;
        }
        text.remove_prefix(word.text.size());
        while (!text.empty() &&
               (text.front() == '.' || text.front() == '-' || text.front() == '_')) {
            text.remove_prefix(1);
        }
        const std::uint64_t number =
            !text.empty() && is_digit(text.front()) ? take_number(text) : 0;
        if (word.stage == Stage::dev) {
            version.development = true;
            version.development_number = number;
        } else {
            version.stage = word.stage;
            version.stage_number = number;
        }
        return;
    }
    text = {};  // a suffix of another world: what came before it decides
}

ParsedVersion parsed(const std::string& whole) {
    ParsedVersion version;
    const std::string lowered = lower(whole.substr(0, whole.find('+')));
    std::string_view text = lowered;
    if (!text.empty() && text.front() == 'v') {
        text.remove_prefix(1);
    }
    take_epoch(text, version);
    while (!text.empty() && is_digit(text.front())) {
        version.numbers.push_back(take_number(text));
        if (text.size() > 1 && text.front() == '.' && is_digit(text[1])) {
            text.remove_prefix(1);
        } else {
            break;
        }
    }
    while (!text.empty()) {
        if (text.front() == '-' && text.size() > 1 &&
            is_digit(text[1])) {  // "1.0-1" is a post release
            text.remove_prefix(1);
            version.stage = Stage::post;
            version.stage_number = take_number(text);
        } else if (text.front() == '.' || text.front() == '-' || text.front() == '_') {
            text.remove_prefix(1);
        } else {
            take_suffix(text, version);
        }
    }
    if (version.development && version.stage == Stage::release) {
        version.stage = Stage::dev;
        version.stage_number = version.development_number;
        version.development = false;
    }
    return version;
}

int order(std::uint64_t a, std::uint64_t b) {
    return a < b ? -1 : static_cast<int>(a > b);
}

}  // namespace

int compare_versions(const std::string& a, const std::string& b) {
    const ParsedVersion x = parsed(a);
    const ParsedVersion y = parsed(b);
    if (const int result = order(x.epoch, y.epoch); result != 0) {
        return result;
    }
    for (std::size_t i = 0; i < std::max(x.numbers.size(), y.numbers.size()); ++i) {
        const int result =
            order(i < x.numbers.size() ? x.numbers[i] : 0, i < y.numbers.size() ? y.numbers[i] : 0);
        if (result != 0) {
            return result;
        }
    }
    if (x.stage != y.stage) {
        return x.stage < y.stage ? -1 : 1;
    }
    if (const int result = order(x.stage_number, y.stage_number); result != 0) {
        return result;
    }
    if (x.development != y.development) {
        return x.development ? -1 : 1;
    }
    return order(x.development_number, y.development_number);
}

}  // namespace cudiag
