// Proof of a remedy by ld.so itself: LD_TRACE_LOADED_OBJECTS with LD_WARN and LD_BIND_NOW maps a
// file and everything it needs, reports what is missing and which symbols stay undefined, and runs
// no constructor (ld.so(8)).
#pragma once

#include <string>
#include <vector>

#include "diagnose/loader/search.h"

namespace cudiag {

struct DryRun {
    bool ran = false;  // false: the loader could not be started; `why` says why
    std::string why;   // also, after a run: what of the process could not be brought along
    std::vector<std::string> missing;  // NEEDED names "not found"
    std::vector<std::string>
        undefined;  // "symbol|version|file" in ld.so's order; version may be ""
    std::vector<std::string> version_errors;  // ld.so's own lines: "/lib/libstdc++.so.6: version
                                              // `GLIBCXX_3.4.30' not found (required by …)"
    std::vector<std::string> mapped;          // "name => path" pairs in order, as "name|path"
    std::string failure;  // any other error text ("cannot allocate memory in static TLS block",
                          // "wrong ELF class: …")
};

// What to change for the run: nothing here touches the real process or file system.
struct DryRunChange {
    std::string ld_library_path;  // the whole value to use
    bool keep_mapped = true;      // preload what the process had mapped, in link-map order, first
    std::vector<std::string> preload_first;  // files preloaded before everything else
    std::vector<std::string> drop_mapped;    // mapped paths left out of the preloads
    std::string glibc_tunables;
    bool symbols = true;  // false: libraries and versions only, without the cost of relocating all
};

// Traces `file` in the state of the process, under the change. At most `seconds`; then ran is
// false. The process's program is traced with `file` preloaded last, so that the program's DT_RPATH
// and symbols count as they do for a dlopen; where there is no such program, `file` stands for it.
// What a trace cannot show: the limits of static TLS, constructors.
DryRun dry_run(const LoadState& state, const std::string& file, const DryRunChange& change,
               int seconds = 5);

// Does `after` lack the failure that `before` had, without bringing a new one? Undefined symbols
// are compared as sets: those that another module of the process provides at run time are in both.
// A remedy that gives a file only some of the symbols that it lacked (same version node, or same
// beginning of the name) is none.
bool cures(const DryRun& before, const DryRun& after);

}  // namespace cudiag
