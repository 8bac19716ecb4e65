// What the loader cares about in an ELF file, by elfutils' libelf. The only header that knows
// libelf exists.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cudiag {

// One symbol version that a file needs from, or defines under, a name.
struct NeededVersion {
    std::string file;  // SONAME the version is expected from (verneed vn_file)
    std::string version;
    bool weak = false;
};

struct DynamicSymbol {
    std::string name;          // mangled
    std::string version;       // "" if none; without @
    std::string version_file;  // for undefined symbols with a version: verneed's file
    bool defined = false;
    bool weak = false;
    bool hidden_version = false;  // foo@V rather than foo@@V
};

struct ElfFile {
    std::string path;
    std::uint16_t machine = 0;  // EM_*
    unsigned bits = 0;          // 32 or 64
    bool little_endian = true;
    std::uint16_t type = 0;  // ET_*
    std::string soname;
    std::vector<std::string> needed;
    std::vector<std::string> auxiliary;  // DT_AUXILIARY: loaded too, but its absence is no error
    std::vector<std::string> filters;    // DT_FILTER: loaded as if needed
    std::optional<std::string> rpath;    // raw DT_RPATH; std::nullopt when absent
    std::optional<std::string> runpath;
    std::uint64_t flags = 0;   // DT_FLAGS
    std::uint64_t flags1 = 0;  // DT_FLAGS_1
    std::vector<NeededVersion> needed_versions;
    std::vector<std::string> defined_versions;  // verdef, without the base
    std::string base_version;  // name of the base verdef: ld.so accepts it as a version too
    bool versioned = false;    // has a DT_VERDEF at all: without one, ld.so lets every version pass
    std::string interpreter;
    std::string build_id;         // hex
    std::string comment;          // .comment, joined by newlines
    std::uint64_t tls_bytes = 0;  // PT_TLS memory size
    std::uint64_t tls_align = 0;
    bool static_tls() const;      // DF_STATIC_TLS
    bool no_default_lib() const;  // DF_1_NODEFLIB
    bool executable() const;      // a program rather than a library: ET_EXEC, or a PIE by DF_1_PIE
};

// Why a file is not one that this machine's loader could map. The loader-wrong-architecture rule
// speaks from this.
enum class ElfProblem : std::uint8_t {
    none,
    absent,
    unreadable,
    is_directory,
    empty,
    not_elf,
    truncated,
    linker_script,
    damaged
};

struct ElfRead {
    std::optional<ElfFile>
        file;  // set when problem is none; for truncated, what could still be read
    ElfProblem problem = ElfProblem::none;
    std::string detail;  // a sentence: "text file that begins with '/* GNU ld script'", "needs
                         // 1,234,567 bytes, has 4,096"
};

// Reads headers and the dynamic section only: cheap (< 1 ms) on files of any size, safe on hostile
// bytes.
ElfRead read_elf(const std::string& path);

// The dynamic symbol table, defined and undefined. Costs a pass over .dynsym.
std::vector<DynamicSymbol> dynamic_symbols(const std::string& path);

// Does the file export this symbol (with this version, if not empty)? Uses the hash table where
// there is one.
bool exports(const std::string& path, std::string_view symbol, std::string_view version = {});

// The machine of this process and of a file in words: "x86-64, 64-bit", "AArch64, 64-bit".
std::string machine_name(std::uint16_t machine, unsigned bits);
std::uint16_t host_machine();

// C++ name if `name` is a mangled one, else `name` itself.
std::string demangle(const std::string& name);

// First match of a printable string that begins with `prefix` in the file's read-only data, e.g.
// "NCCL version "; up to `limit` characters. Scans by mapped pages; "" if none. For "what is this
// file really".
std::string find_string(const std::string& path, std::string_view prefix, std::size_t limit = 80);

}  // namespace cudiag
