#include "present/painter.h"

#include <fmt/core.h>

#include "present/spoken.h"

namespace cudiag {

std::string Painter::line(const std::string& label, const std::string& text) const {
    return spoken_line(spoken_label(label), text);
}

std::string Painter::spoken_line(const std::string& label, const std::string& text) const {
    return fmt::format("  {}{}{}\n", dim(label), padding(label, kLabelColumns),
                       wrapped(printable(spoken(text)), style_.width, kLabelColumns + 2));
}

std::string Painter::paint(const char* code, const std::string& text) const {
    return style_.colour ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
}

}  // namespace cudiag
