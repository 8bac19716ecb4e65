// What an installed pip package says that it needs: Requires-Dist of its METADATA (core metadata
// specification).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/packages/owner.h"

namespace cudiag {

struct Requirement {
    std::string name;  // normalised, PEP 503
    std::string spec;  // "==2.29.7", ">=3", "" for any
};

// Requirements without an extra; environment markers are dropped, since wheels of one platform
// carry only their own.
std::vector<Requirement> requirements_of(const Package& package);

// The requirement of `package` on `name`, if it has one.
std::optional<Requirement> requirement_on(const Package& package, const std::string& name);

// A pip package's name as PEP 503 normalises it.
std::string normalised(const std::string& name);

}  // namespace cudiag
