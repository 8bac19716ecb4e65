#include "diagnose/loader/search_paths.h"

#include <algorithm>

namespace cudiag {
namespace {

bool continues_name(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

// Length of the token `name` at the start of `text` (behind the $), with its braces; 0 if it is not
// there.
std::size_t token_length(std::string_view text, std::string_view name) {
    const bool braces = !text.empty() && text.front() == '{';
    const std::string_view body = text.substr(braces ? 1 : 0);
    if (body.substr(0, name.size()) != name) {
        return 0;
    }
    const char after = body.size() > name.size() ? body[name.size()] : '\0';
    if ((braces && after != '}') || continues_name(after)) {
        return 0;
    }
    return name.size() + (braces ? 2 : 0);
}

}  // namespace

std::optional<std::string> expand(std::string_view text, const Tokens& tokens) {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        if (text[at] != '$') {
            result += text[at++];
            continue;
        }
        ++at;
        std::size_t length = 0;
        const std::optional<std::string>* value = nullptr;
        if ((length = token_length(text.substr(at), "ORIGIN")) != 0) {
            value = &tokens.origin;
        } else if ((length = token_length(text.substr(at), "PLATFORM")) != 0) {
            value = &tokens.platform;
        } else if ((length = token_length(text.substr(at), "LIB")) != 0) {
            value = &tokens.lib;
        }
        if (value == nullptr) {
            result += '$';
            continue;
        }
        if (!value->has_value()) {
            return std::nullopt;
        }
        result += **value;
        at += length;
    }
    return result;
}

Directory* Directories::get(const std::string& name) {
    std::unique_ptr<Directory>& slot = known_[name];
    if (!slot) {
        // A relative one is always tried: the current directory may change.
        const bool absolute = !name.empty() && name.front() == '/';
        slot = std::make_unique<Directory>();
        slot->name = name;
        slot->subdirs.assign(subdirs_, absolute ? Existence::unknown : Existence::existing);
    }
    return slot.get();
}

DirectoryList Directories::list(const std::string& text, std::string_view separators,
                                const Tokens& tokens) {
    DirectoryList result;
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find_first_of(separators, start), text.size());
        const std::string raw = text.substr(start, end - start);
        start = end + 1;
        std::string name;
        if (!raw.empty()) {
            const std::optional<std::string> expanded = expand(raw, tokens);
            if (!expanded || expanded->empty()) {
                continue;
            }
            name = *expanded;
            while (name.size() > 1 && name.back() == '/') {
                name.pop_back();
            }
            if (name.back() != '/') {
                name += '/';
            }
        }
        Directory* directory = get(name);
        const bool listed =
            std::any_of(result.begin(), result.end(),
                        [&](const ListedDirectory& other) { return other.directory == directory; });
        if (!listed) {
            result.push_back({directory, raw});
        }
    }
    return result;
}

}  // namespace cudiag
