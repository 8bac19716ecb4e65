// What a card was measured to do, for a person at a terminal.
#pragma once

#include <string>

#include "diagnose/optimizer/card.h"
#include "present/terminal.h"

namespace cudiag {

// The copy's speed and a table of AdamW's steps: all sizes of float32, of other dtypes the largest.
std::string render_card(const Card& card, const Style& style);

}  // namespace cudiag
