// Lists of directories as ld.so keeps them: split, tokens replaced, each directory once per process
// with what is known of its existence (glibc: fillin_rpath, struct r_search_path_elem).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/loader/search.h"

namespace cudiag {

enum class Existence : std::uint8_t { unknown, existing, missing };

// One directory, shared by all lists that name it: once found missing, it is never tried again in
// that process.
struct Directory {
    std::string name;                // with its trailing slash; "" is the current directory
    std::vector<Existence> subdirs;  // one for each of LoaderConfig::hwcaps
};

struct ListedDirectory {
    Directory* directory;
    std::string raw;  // as written
};

using DirectoryList = std::vector<ListedDirectory>;

// What $ORIGIN, $LIB and $PLATFORM stand for; an unset one makes a path that uses it unusable.
struct Tokens {
    std::optional<std::string> origin;
    std::optional<std::string> lib;
    std::optional<std::string> platform;
};

// `text` with its tokens replaced; std::nullopt when one has no value.
std::optional<std::string> expand(std::string_view text, const Tokens& tokens);

class Directories {
  public:
    explicit Directories(std::size_t subdirs) : subdirs_{subdirs} {}

    // Splits at any of `separators`. Directories that the list already has are left out.
    DirectoryList list(const std::string& text, std::string_view separators, const Tokens& tokens);

    Directory* get(const std::string& name);

  private:
    std::size_t subdirs_;
    std::map<std::string, std::unique_ptr<Directory>> known_;
};

}  // namespace cudiag
