// A model of how glibc's ld.so finds a library: elf/dl-load.c of glibc 2.31 to 2.43. Checked
// against LD_DEBUG=libs on real libraries by tests/unit/diagnose/loader/. Searches the real file
// system; changes nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "diagnose/elf/elf_file.h"
#include "diagnose/facts.h"

namespace cudiag {

// What ld.so itself would use on this machine: found once, by asking the loader (`ld.so
// --list-diagnostics`, `--help`, or its read-only data for glibc < 2.33).
struct LoaderConfig {
    std::string interpreter;               // /lib64/ld-linux-x86-64.so.2
    std::string glibc_version;             // "2.36"
    std::vector<std::string> system_dirs;  // without trailing slash
    std::vector<std::string> hwcaps;  // subdirectories tried in each directory, in order, "" last
    std::string platform;             // $PLATFORM
    std::string lib;                  // $LIB: "lib/x86_64-linux-gnu" on Debian, "lib64" elsewhere
    std::string cache_path = "/etc/ld.so.cache";
};

LoaderConfig host_loader_config();
LoaderConfig loader_config_for(const std::string& interpreter);

enum class Rule : std::uint8_t {
    already_loaded,
    slash,
    rpath,
    ld_library_path,
    runpath,
    cache,
    system_dir
};

// One place where the loader looked, in its own order.
struct SearchStep {
    Rule rule;
    std::string owner;  // the file whose DT_RPATH or DT_RUNPATH this is; "" otherwise
    std::string
        raw;  // the entry as written, before $ORIGIN and the like: "$ORIGIN/../../nvjitlink/lib"
    std::string dir;  // the directory looked in (for `cache`: the cache file; for `already_loaded`,
                      // the mapped file)
    std::vector<std::string> tried;  // files tried there, in order, hwcaps subdirectories included
    std::string result;  // "found", "absent", "no such directory", "permission denied", "wrong ELF
                         // class", "not ELF: …"
    bool matched = false;
};

// In words, for people and JSON: "DT_RUNPATH of /…/_C.so", "LD_LIBRARY_PATH", "ld.so.cache",
// "system directory".
std::string why(const SearchStep& step);

// One library looked for on behalf of one file.
struct Lookup {
    std::string name;          // as in DT_NEEDED or dlopen
    std::string requested_by;  // path of the file that needs it; "" for the dlopen itself
    std::vector<SearchStep> steps;
    std::string found;  // path as ld.so would name it; "" if nowhere
    bool already_loaded = false;
    std::vector<std::string>
        chain;  // from the asked-for library down to requested_by, paths; the file that needs last
    std::string error;  // as dlerror() would end: "cannot open shared object file: No such file or
                        // directory"
    bool ignorable = false;  // LD_PRELOAD or DT_AUXILIARY: ld.so goes on without it
};

// A version that a found provider lacks.
struct VersionClash {
    std::string needed_by, provider, version;
    bool provider_has_no_versions = false;
    bool weak = false;
};

// The whole of one load, breadth first as ld.so does it.
struct Resolution {
    std::vector<Lookup> lookups;  // in ld.so's order; the first is the asked-for name itself
    std::vector<VersionClash> clashes;
    // nullptr if all were found. The lookups go on after a missing library as in a trace, so that
    // all missing ones are known; only a file that ld.so rejects outright (`Lookup::error` names
    // it) ends the list, as it ends the load.
    const Lookup* first_missing() const;
    const Lookup* lookup_of(const std::string& name) const;  // first lookup of that name
};

// The process at the moment of a dlopen: what is mapped and what was in the environment.
struct LoadState {
    LoaderConfig config;
    std::vector<Module> modules;  // link-map order, the executable first; may be empty
    std::string executable;
    std::string cwd;
    std::string ld_library_path;  // as at the start of the process: ld.so never reads it again
    std::map<std::string, std::string>
        extra_dirs;  // unused by the loader; reserved for dry runs of a remedy
};

// Resolves dlopen(name) as called from `caller` (path of the calling module, decides whose RUNPATH
// counts), or, when `name` holds a slash, that file. Without modules, the start of `executable` (if
// any) is played first.
Resolution resolve_dlopen(const LoadState& state, const std::string& name,
                          const std::string& caller);

// Resolves a program at start-up: itself, `preloads`, its NEEDED. A library may stand for the
// program, as in `ld.so FILE`.
Resolution resolve_program(const LoadState& state, const std::string& program,
                           const std::vector<std::string>& preloads);

// Resolves one DT_NEEDED of one file, given who loaded whom (`loaders`: from the file up, for
// inherited DT_RPATH).
Lookup resolve_needed(const LoadState& state, const std::string& name,
                      const std::vector<std::string>& loaders);

// Every copy that a search for `name` would come by, in ld.so's order: as resolve_needed, but no
// match ends it and what is loaded does not count. A matched step's copy is its `tried.back()`;
// `found` is the first.
Lookup every_copy(const LoadState& state, const std::string& name,
                  const std::vector<std::string>& loaders);

}  // namespace cudiag
