#include "diagnose/loader/wrong_copy.h"

#include <algorithm>

#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/symbol_owner.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// A symbol's version is mostly a name of its own (GLIBC_2.17); some libraries take their SONAME for
// it.
bool looks_like_soname(const std::string& name) {
    return name.find(".so") != std::string::npos;
}

}  // namespace

std::string why_chosen(const Source& source) {
    if (source.path.empty()) {
        return say("found nowhere");
    }
    const std::string rule =
        source.step ? why(*source.step) : say("by a rule that the model could not tell");
    return source.mapped ? say("already in the process: loaded for {}, {}", source.brought_by, rule)
                         : rule;
}

bool defines_version(const std::string& path, const std::string& version) {
    const ElfRead read = read_elf(path);
    return read.file && std::count(read.file->defined_versions.begin(),
                                   read.file->defined_versions.end(), version) > 0;
}

std::string expected_soname(const LoaderCase& c, const std::string& file) {
    if (c.error.form == ErrorForm::missing_version) {
        return file_name(c.error.provider);
    }
    for (const DynamicSymbol& symbol : dynamic_symbols(file)) {
        if (!symbol.defined && symbol.name == c.error.symbol &&
            looks_like_soname(symbol.version_file)) {
            return symbol.version_file;
        }
    }
    const ElfRead read = read_elf(file);
    if (!read.file) {
        return {};
    }
    if (const SymbolOwner* owner = symbol_owner(demangle(c.error.symbol))) {
        for (const std::string& needed : read.file->needed) {
            if (library_family(needed) == owner->family) {
                return needed;
            }
        }
    }
    for (const std::string& needed : read.file->needed) {
        for (const Copy& copy : find_copies(needed, c.process, c.modules, c.state.config)) {
            if (copy.why_not.empty() && exports(copy.path, c.error.symbol)) {
                return needed;
            }
        }
    }
    return {};
}

}  // namespace cudiag
