// Fields of entries as a reader would give them.
#pragma once

#include <cstdint>
#include <string>

#include "record/reader.h"

namespace cudiag::testing {

inline FieldRead text(Field field, const std::string& value) {
    return {field, value, 0};
}

inline FieldRead number(Field field, std::uint64_t value) {
    return {field, std::string(reinterpret_cast<const char*>(&value), sizeof value), value};
}

}  // namespace cudiag::testing
