// Columns of text on a terminal, where a Chinese character takes two.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cudiag {

// Columns that UTF-8 takes on a terminal: two for each wide character (UAX #11), none for those
// that combine; one for each byte that is no UTF-8. libc's wcwidth knows only the locale that is
// set.
std::size_t text_width(std::string_view text);

// Spaces that follow the text in a column of that width: one at least.
std::string padding(std::string_view text, std::size_t width);

// `text` wrapped at the width with `indent` spaces before every line but the first. Breaks at
// spaces, and between wide characters, where no line begins with a closing mark nor ends with an
// opening one.
std::string wrapped(const std::string& text, std::size_t width, std::size_t indent);

}  // namespace cudiag
