#include "diagnose/loader/wrong_copy.h"

#include <fmt/core.h>

#include <algorithm>

namespace cudiag {

std::string why_chosen(const Source& source) {
    if (source.path.empty()) {
        return "found nowhere";
    }
    const std::string rule =
        source.step ? why(*source.step) : "by a rule that the model could not tell";
    return source.mapped
               ? fmt::format("already in the process: loaded for {}, {}", source.brought_by, rule)
               : rule;
}

bool defines_version(const std::string& path, const std::string& version) {
    const ElfRead read = read_elf(path);
    return read.file && std::count(read.file->defined_versions.begin(),
                                   read.file->defined_versions.end(), version) > 0;
}

}  // namespace cudiag
