// The parts of a block on a terminal: colours, and lines with a label on the left.
#pragma once

#include <cstddef>
#include <string>

#include "present/terminal.h"

namespace cudiag {

constexpr std::size_t kLabelColumns = 12;  // of the left column

// In colours where the style has them. The style must outlive it.
class Painter {
  public:
    explicit Painter(const Style& style) : style_{style} {}

    std::string bold(const std::string& text) const { return paint("1", text); }

    std::string red(const std::string& text) const { return paint("1;31", text); }

    std::string yellow(const std::string& text) const { return paint("1;33", text); }

    std::string green(const std::string& text) const { return paint("32", text); }

    std::string dim(const std::string& text) const { return paint("2", text); }

    std::size_t width() const { return style_.width; }

    // The label and the text in the user's language, wrapped beside the left column.
    std::string line(const std::string& label, const std::string& text) const;

    // As `line`, of a label in the user's language.
    std::string spoken_line(const std::string& label, const std::string& text) const;

  private:
    std::string paint(const char* code, const std::string& text) const;

    const Style& style_;
};

}  // namespace cudiag
