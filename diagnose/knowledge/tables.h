// knowledge/*.json turned into tables. Apart from knowledge.h so that tests can feed in malformed
// data.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/knowledge/knowledge.h"

namespace cudiag {

// Data that does not follow docs/knowledge.md; the text names the place.
class KnowledgeError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// CUDA release -> tag of the nvidia/cuda images: "12.4" -> "12.4.1".
using ImageTags = std::map<std::string, std::string, std::less<>>;

struct LibraryTable {
    std::map<std::string, LibraryRelease, std::less<>> by_soname;
    std::map<std::string, std::string, std::less<>> family_of;  // "libcudart" -> "cudart"
    ImageTags images;
};

struct TorchTable {
    std::map<std::string, TorchRelease, std::less<>> by_version;
};

using SymbolTable = std::map<std::pair<std::string, std::string>, std::string, std::less<>>;
using VersionHints = std::map<std::string, VersionHint, std::less<>>;
using GnuVersions = std::map<std::string, std::string, std::less<>>;

// Each throws KnowledgeError when a key is missing, unknown or of the wrong type, a name occurs
// twice or a source is empty. JSON with comments.
LibraryTable parse_libraries(std::string_view json);
TorchTable parse_torch(std::string_view json);
SymbolTable parse_symbols(std::string_view json);
VersionHints parse_versions(std::string_view json);
GnuVersions parse_gnu_versions(std::string_view json);

}  // namespace cudiag
