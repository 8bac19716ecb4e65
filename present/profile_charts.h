// The charts of a profile's HTML. Shapes are SVG that stretches to the width of the screen; words
// stand outside of it, so that they keep their size on a phone.
#pragma once

#include <string>

#include "diagnose/optimizer/profile.h"
#include "present/language.h"

namespace cudiag {

// Text for HTML, between tags or in a quoted attribute; control bytes removed.
std::string escaped(const std::string& text);

// What was said, in the language of the page, for HTML.
std::string told(const std::string& sentence, Language language);

// A bar for each step of the optimizer: busy and idle between its first operation and its last.
std::string steps_chart(const Profile& profile, std::size_t optimizer, Language language);

// One step's operations in time, a lane for each stream, with a legend of its kernels.
std::string timeline_chart(const Profile& profile, std::size_t step, Language language);

// A whole training step: the optimizer's busy time, its gaps, and the rest.
std::string share_chart(const Optimizer& optimizer, Language language);

// The optimizer's speed beside what memory allows: this card's copy, torch's fused step and our own
// kernel where they were measured. "" if the bytes of a step are not known.
std::string roofline_chart(const Profile& profile, const Optimizer& optimizer, Language language);

}  // namespace cudiag
