#include "diagnose/build/words.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace cudiag {

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> pieces;
    while (!text.empty()) {
        const auto end = text.find(separator);
        const std::string_view piece = text.substr(0, end);
        if (!piece.empty()) {
            pieces.emplace_back(piece);
        }
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return pieces;
}

std::vector<std::string> shell_words(std::string_view text) {
    std::vector<std::string> words;
    std::string word;
    bool in_word = false;
    char quote = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool next_is_escaped =
            c == '\\' && quote != '\'' && i + 1 < text.size() &&
            (quote == 0 || text[i + 1] == '"' || text[i + 1] == '\\' || text[i + 1] == '$');
        if (next_is_escaped) {
            word += text[++i];
            in_word = true;
        } else if (quote != 0 ? c == quote : (c == '"' || c == '\'')) {
            quote = quote != 0 ? '\0' : c;
            in_word = true;
        } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
            if (in_word) {
                words.push_back(std::exchange(word, {}));
            }
            in_word = false;
        } else {
            word += c;
            in_word = true;
        }
    }
    if (in_word) {
        words.push_back(std::move(word));
    }
    return words;
}

std::string directory_of(const std::string& path) {
    const auto slash = path.rfind('/');
    if (slash == std::string::npos) {
        return {};
    }
    return slash == 0 ? "/" : path.substr(0, slash);
}

std::string base_name(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string absolute_path(const std::string& path, const std::string& directory) {
    if (path.empty()) {
        return path;
    }
    const std::filesystem::path whole =
        path.front() == '/' ? std::filesystem::path{path} : std::filesystem::path{directory} / path;
    std::string plain = whole.lexically_normal().string();
    if (path.find("..") == std::string::npos) {
        return plain;
    }
    // A ".." behind a link leads elsewhere than it reads.
    std::error_code error;
    return std::filesystem::equivalent(whole, plain, error) ? plain : whole.string();
}

std::vector<std::string> values_of(const std::vector<std::string>& argv, std::string_view option) {
    std::vector<std::string> values;
    for (std::size_t i = 1; i < argv.size(); ++i) {
        if (argv[i].rfind(option, 0) != 0) {
            continue;
        }
        if (argv[i].size() > option.size()) {
            values.push_back(argv[i].substr(option.size()));
        } else if (i + 1 < argv.size()) {
            values.push_back(argv[++i]);
        }
    }
    return values;
}

std::optional<std::string> argument_ending(const std::vector<std::string>& argv,
                                           const std::vector<std::string_view>& endings) {
    for (std::size_t i = 1; i < argv.size(); ++i) {
        const std::string_view word = argv[i];
        const bool fits = std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) {
            return word.size() >= ending.size() &&
                   word.substr(word.size() - ending.size()) == ending;
        });
        if (fits && word.front() != '-') {
            return argv[i];
        }
    }
    return std::nullopt;
}

std::string command_text(const std::vector<std::string>& argv, std::size_t most) {
    std::string text;
    for (const std::string& word : argv) {
        text += (text.empty() ? "" : " ") + word;
        if (text.size() > most) {
            return text.substr(0, most) + " …";
        }
    }
    return text;
}

}  // namespace cudiag
