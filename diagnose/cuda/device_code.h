// The device code that a call of the driver was about, which failed or took long: what the rules of
// code that a GPU does not take have in common.
#pragma once

#include <string>
#include <vector>

#include "diagnose/cuda/running.h"
#include "diagnose/elf/fatbin.h"

namespace cudiag {

struct CodeInQuestion {
    std::string file;               // that holds it; "" if it is in none, or that was not seen
    bool in_memory = false;         // made while the process ran: by NVRTC, Triton, numba
    bool exact = false;             // `code` is that very image's, not the whole file's
    std::vector<DeviceCode> code;   // empty if it could not be read
    std::string kernel;             // mangled; "" if not known
    std::string package, packaged;  // "xformers", "xformers 0.0.22"; "" if no package owns it
    bool is_torch = false;          // the file is torch's own
    bool links_torch = false;       // it needs torch's libraries: an extension of it
};

// As far as it was recorded and the file can be read now.
CodeInQuestion code_of(const RunningCase& c);
CodeInQuestion code_of(const SlowCode& slow, const Process& process);

// As evidence: kernel, file, of (what `architectures` describes), architectures, package.
void add_code(const CodeInQuestion& code, nlohmann::ordered_json& evidence);

// "libx.so"; "code that was made while the program ran"; "code that was not seen".
std::string code_text(const CodeInQuestion& code);

// All of it is for one architecture on purpose (sm_90a): it need not compile for another.
bool is_for_one_architecture(const std::vector<DeviceCode>& code);

// How to build for one architecture, in the words of what builds the file: to be asked only of code
// that is the user's own.
Fix build_for(const CodeInQuestion& code, int sm);

}  // namespace cudiag
