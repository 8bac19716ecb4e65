// What ld.so thinks of one candidate file: open it, read its headers, take it, pass it over, or
// give up.
#pragma once

#include <cstdint>
#include <string>

namespace cudiag {

enum class Verdict : std::uint8_t {
    usable,
    passed_over,  // the search goes on
    rejected      // the load ends here with `error`
};

struct Candidate {
    Verdict verdict = Verdict::passed_over;
    int error_number = 0;      // errno as the search sees it afterwards
    bool other_class = false;  // 32-bit file for a 64-bit loader or the reverse
    std::string result;        // "found", "absent", "wrong ELF class", "not ELF: …"
    std::string error;         // ld.so's words, for rejected: "file too short"
    std::uint64_t device = 0, inode = 0;
};

struct FileDemands {
    unsigned bits = 64;
    std::uint16_t machine = 0;
    bool as_program = false;  // given to ld.so as the program: an executable is then welcome
    unsigned kernel = 0;      // of a loader that minds .note.ABI-tag (glibc < 2.36): 0x030a00 for
                              // Linux 3.10; 0: it does not
};

// Follows glibc's open_verify and the checks of _dl_map_object_from_fd. `path` as to be opened.
Candidate examine(const std::string& path, const FileDemands& demands);

// In the form of FileDemands::kernel; 0 if it cannot be told.
unsigned running_kernel();

// "cannot open shared object file: No such file or directory"
std::string cannot_open(int error_number);

}  // namespace cudiag
