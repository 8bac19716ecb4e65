// States of a process and its machine by name, for the remedies of knowledge/cuda_unavailable.json.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "diagnose/cuda/case.h"

namespace cudiag {

// Every name that a remedy may ask for, and whether it holds.
std::map<std::string, bool> states_of(const CudaCase& c);

// Do all of these hold? "!x": x must not. A name that does not exist holds in no way.
bool hold(const std::map<std::string, bool>& states, const std::vector<std::string>& names);

// Every name that a remedy may put in braces, and what stands for it.
std::map<std::string, std::string> words_of(const CudaCase& c);

// `text` with the words in braces filled in.
std::string filled(std::string text, const std::map<std::string, std::string>& words);

}  // namespace cudiag
