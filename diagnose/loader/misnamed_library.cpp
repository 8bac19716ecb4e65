#include "diagnose/loader/misnamed_library.h"

#include <algorithm>
#include <vector>

#include "diagnose/elf/elf_file.h"
#include "diagnose/loader/surroundings.h"

namespace cudiag {
namespace {

std::string stem(const std::string& name) {
    return name.substr(0, name.find(".so"));
}

void add_list(const std::string& list, std::vector<std::string>& directories) {
    for (std::size_t begin = 0; begin < list.size();) {
        const std::size_t end = std::min(list.find(':', begin), list.size());
        if (list[begin] == '/') {
            directories.push_back(list.substr(begin, end - begin));
        }
        begin = end + 1;
    }
}

std::vector<std::string> directories_of_links(const LoaderCase& c, const std::string& file) {
    std::vector<std::string> directories{file.substr(0, file.rfind('/'))};
    if (const auto elf = read_elf(file).file) {
        add_list(elf->runpath.value_or(""), directories);
        add_list(elf->rpath.value_or(""), directories);
    }
    for (const std::string& site : site_packages_dirs(c.process, c.modules)) {
        directories.push_back(site + "/torch/lib");
    }
    if (const auto found = c.process.environment.find("LIBRARY_PATH");
        found != c.process.environment.end()) {
        add_list(found->second, directories);
    }
    return directories;
}

}  // namespace

std::optional<MisnamedLibrary> misnamed_library(const LoaderCase& c, const std::string& file,
                                                const std::string& symbol) {
    constexpr std::size_t kShortest = 4;
    const Linkable* named = nullptr;
    for (std::size_t length = symbol.size(); length >= kShortest && named == nullptr; --length) {
        named = linkable(symbol.substr(0, length));
    }
    if (named == nullptr) {
        return std::nullopt;
    }
    for (const std::string& directory : directories_of_links(c, file)) {
        const std::string path = directory + "/" + named->file;
        const auto elf = read_elf(path).file;
        if (elf && !elf->soname.empty() && stem(elf->soname) != stem(named->file)) {
            return MisnamedLibrary{path, elf->soname, named};
        }
    }
    return std::nullopt;
}

}  // namespace cudiag
