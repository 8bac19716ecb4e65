// Findings for a person at a terminal.
#pragma once

#include <string>
#include <vector>

#include "diagnose/facts.h"
#include "diagnose/finding.h"
#include "present/text_width.h"

namespace cudiag {

struct Style {
    bool colour = false;
    std::size_t width = 100;  // columns
};

// By the descriptor: colour only on a terminal and without NO_COLOR (no-color.org) or TERM=dumb;
// width of the terminal, else COLUMNS, else 100.
Style style_for(int descriptor);

// One block a cause; consequences are told inside the block of their cause. "" if there are no
// findings.
std::string render_findings(const std::vector<Finding>& findings, const Style& style,
                            const std::string& run_directory);

// What the run was: its processes, how each ended, what was not readable.
std::string render_run(const Facts& facts, const Style& style);

// Removes control bytes from text that came out of somebody else's process, so that it cannot steer
// the terminal.
std::string printable(const std::string& text);

}  // namespace cudiag
