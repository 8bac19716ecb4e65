// glibc's loader texts in parts (data: knowledge/dlerror.json).
#pragma once

#include <string>

namespace cudiag {

enum class ErrorForm : unsigned char {
    unknown,
    missing_file,
    cannot_open,
    missing_version,
    no_version_information,
    undefined_symbol,
    wrong_class,
    not_elf,
    cannot_map,
    static_tls
};

struct LoaderError {
    ErrorForm form = ErrorForm::unknown;
    std::string subject;  // the object the text is about: the missing name, or the file that wants
                          // something
    std::string symbol;   // mangled
    std::string version;
    std::string provider;  // the file that should have the version
    std::string detail;    // the rest, as glibc says it
};

// Never fails: a text that no pattern knows gives form unknown and the text as detail.
LoaderError parse_loader_error(const std::string& text);

}  // namespace cudiag
