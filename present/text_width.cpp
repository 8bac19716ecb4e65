#include "present/text_width.h"

#include <algorithm>
#include <vector>

namespace cudiag {
namespace {

struct Character {
    std::string_view bytes;
    std::size_t width = 1;
};

struct Range {
    char32_t first, last;
};

// EastAsianWidth.txt of Unicode 15.1, classes W and F, in blocks: a few characters that are not
// assigned, or narrow (U+303F), fall in between.
constexpr Range kWide[] = {{0x1100, 0x115f},   {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},
                           {0xf900, 0xfaff},   {0xfe10, 0xfe19},   {0xfe30, 0xfe6f},
                           {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
                           {0x1f900, 0x1f9ff}, {0x20000, 0x2fffd}, {0x30000, 0x3fffd}};
// Combining marks, joiners, variation selectors.
constexpr Range kNone[] = {{0x0300, 0x036f}, {0x200b, 0x200f}, {0xfe00, 0xfe0f}};

bool among(const Range* begin, const Range* end, char32_t point) {
    return std::any_of(begin, end, [point](const Range& range) {
        return point >= range.first && point <= range.last;
    });
}

// The character at the head of `text`, which is not empty. A byte that begins no UTF-8 stands
// alone.
Character first_character(std::string_view text) {
    const auto lead = static_cast<unsigned char>(text.front());
    const std::size_t length = lead < 0x80             ? 1
                               : (lead & 0xe0) == 0xc0 ? 2
                               : (lead & 0xf0) == 0xe0 ? 3
                               : (lead & 0xf8) == 0xf0 ? 4
                                                       : 0;
    if (length < 2 || text.size() < length) {
        return {text.substr(0, 1), 1};
    }
    char32_t point = lead & (0x7fU >> length);
    for (std::size_t i = 1; i < length; ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if ((byte & 0xc0) != 0x80) {
            return {text.substr(0, 1), 1};
        }
        point = point << 6 | (byte & 0x3fU);
    }
    const std::size_t width = among(std::begin(kWide), std::end(kWide), point)   ? 2
                              : among(std::begin(kNone), std::end(kNone), point) ? 0
                                                                                 : 1;
    return {text.substr(0, length), width};
}

bool one_of(std::string_view character, std::string_view marks) {
    return marks.find(character) != std::string_view::npos;
}

// What may not be torn apart: a word between spaces, and of wide characters each with the marks
// that belong to it.
std::vector<std::string_view> pieces_of(std::string_view word) {
    std::vector<std::string_view> pieces;
    std::size_t begin = 0;
    std::size_t at = 0;
    std::string_view last;
    std::size_t last_width = 0;
    while (at < word.size()) {
        const Character next = first_character(word.substr(at));
        const bool between = at > begin && (next.width == 2 || last_width == 2) &&
                             !one_of(next.bytes, "，。；：、）」』》！？”’…%.,;:)]!?") &&
                             !one_of(last, "（「『《“‘([");
        if (between) {
            pieces.push_back(word.substr(begin, at - begin));
            begin = at;
        }
        at += next.bytes.size();
        last = next.bytes;
        last_width = next.width;
    }
    pieces.push_back(word.substr(begin));
    return pieces;
}

}  // namespace

std::size_t text_width(std::string_view text) {
    std::size_t width = 0;
    while (!text.empty()) {
        const Character next = first_character(text);
        width += next.width;
        text.remove_prefix(next.bytes.size());
    }
    return width;
}

std::string padding(std::string_view text, std::size_t width) {
    const std::size_t columns = text_width(text);
    return std::string(width > columns ? width - columns : 1, ' ');
}

std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
    const std::size_t room = width > indent + 20 ? width - indent : 20;
    std::string out;
    std::size_t column = 0;
    std::size_t at = 0;
    const auto new_line = [&] {
        out += "\n" + std::string(indent, ' ');
        column = 0;
    };
    while (at < text.size()) {
        const auto end = std::min(text.find(' ', at), text.size());
        bool first = true;
        for (const std::string_view piece :
             pieces_of(std::string_view{text}.substr(at, end - at))) {
            const std::size_t needed = text_width(piece);
            const std::size_t space = first && column > 0 ? 1 : 0;
            if (column > 0 && column + space + needed > room) {
                new_line();
            } else if (space > 0) {
                out += ' ';
                ++column;
            }
            out += piece;
            column += needed;
            first = false;
        }
        at = end + 1;
    }
    return out;
}

}  // namespace cudiag
