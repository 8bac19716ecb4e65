#include <cxxabi.h>
#include <elf.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>

#include "diagnose/elf/elf_file.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// The demangler's cost grows with the square of some inputs; no compiler makes names as long as
// this.
constexpr std::size_t kLongestMangled = 32U << 10;

const char* machine_word(std::uint16_t machine) {
    switch (machine) {
        case EM_X86_64:
            return "x86-64";
        case EM_386:
            return "i386";
        case EM_AARCH64:
            return "AArch64";
        case EM_ARM:
            return "ARM";
        case EM_PPC64:
            return "PowerPC64";
        case EM_RISCV:
            return "RISC-V";
        case EM_S390:
            return "S/390";
        case EM_CUDA:
            return "CUDA device code";
        default:
            return nullptr;
    }
}

struct Freed {
    void operator()(char* text) const { std::free(text); }
};

}  // namespace

std::string machine_name(std::uint16_t machine, unsigned bits) {
    const char* word = machine_word(machine);
    return word != nullptr ? say("{}, {}-bit", word, bits)
                           : say("machine {}, {}-bit", machine, bits);
}

std::uint16_t host_machine() {
#if defined(__x86_64__)
    return EM_X86_64;
#elif defined(__aarch64__)
    return EM_AARCH64;
#elif defined(__powerpc64__)
    return EM_PPC64;
#else
    return EM_NONE;
#endif
}

std::string demangle(const std::string& name) {
    if (name.compare(0, 2, "_Z") != 0 || name.size() > kLongestMangled) {
        return name;
    }
    int status = 0;
    const std::unique_ptr<char, Freed> plain(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status));
    return status == 0 && plain ? std::string(plain.get()) : name;
}

}  // namespace cudiag
