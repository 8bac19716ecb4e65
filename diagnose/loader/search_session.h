// One process as the search sees it: the objects loaded so far, in link-map order, and what is
// known of directories. Follows glibc's _dl_map_object; the public functions in search.h are built
// from it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/loader/ld_cache.h"
#include "diagnose/loader/search.h"
#include "diagnose/loader/search_file.h"
#include "diagnose/loader/search_paths.h"

namespace cudiag {

// One loaded object (glibc's struct link_map).
struct LoadedObject {
    std::string path;                // as ld.so names it
    std::vector<std::string> names;  // by which a request finds it, besides its SONAME
    std::optional<std::string> origin;
    ElfFile elf;
    LoadedObject* loader = nullptr;  // who needed it first; nullptr for what was dlopened
    std::string asked;               // the DT_NEEDED that led to it, for a module of the process
    std::uint64_t device = 0, inode = 0;
    bool program = false;
    bool from_process = false;                    // was there before this load
    std::optional<DirectoryList> rpath, runpath;  // made when first used
};

class SearchSession {
  public:
    // With the process's modules, if the state has any; else empty but for the interpreter.
    explicit SearchSession(const LoadState& state);

    // The program itself, as the kernel starts it (or, for a library, as `ld.so FILE` does). Fails
    // only if the file cannot be a program: then the Lookup's error says why.
    Lookup start(const std::string& program);

    LoadedObject* program() const { return program_; }

    // From here on objects are mapped by a dlopen, not by the program's start: what was mapped so
    // far is the process's.
    void begin_dlopen();

    // The loaded object of that path; one is added, as if it had been there before, when there is
    // none.
    LoadedObject* object_at(const std::string& path);

    struct Outcome {
        Lookup lookup;
        LoadedObject* object = nullptr;  // nullptr: nowhere, or rejected
        bool rejected = false;
        bool fresh = false;  // mapped by this very request
    };

    // Looks for `name` on behalf of `requester` (may be nullptr). `as_dlopen`: the requester's
    // paths count for this name alone, so it does not become the loader of what is found.
    Outcome map(LoadedObject* requester, const std::string& name, bool as_dlopen);

    // The whole search for `name`, as if no match ended it and nothing were loaded.
    Lookup every_copy(LoadedObject* requester, const std::string& name);

    // Maps what the objects of `roots` need, breadth first, into `resolution`, then checks versions
    // of all fresh ones.
    void map_dependencies(const std::vector<LoadedObject*>& roots, Resolution& resolution);

    // Paths from the first object of this load down to `object`.
    std::vector<std::string> chain_to(const LoadedObject* object) const;

  private:
    LoadedObject* find_loaded(const std::string& name) const;
    LoadedObject* find_for_version(const std::string& name) const;
    LoadedObject* add(const std::string& path, const std::string& requested, LoadedObject* loader,
                      const ElfFile& elf);
    void add_modules();
    void add_interpreter();
    void infer_loaders();
    std::string on_disk(const std::string& path) const;
    std::optional<std::string> origin_of(const std::string& path) const;
    Tokens tokens_of(const LoadedObject* object) const;
    const DirectoryList& rpath_of(LoadedObject* object);
    const DirectoryList& runpath_of(LoadedObject* object);
    const DirectoryList& environment_path();
    bool map_all(LoadedObject* object, const std::vector<std::string>& names, bool ignorable,
                 Resolution& resolution, std::vector<LoadedObject*>& fresh);
    void check_versions(const LoadedObject& object, Resolution& resolution) const;

    struct Search;  // one request on its way
    void seek(Search& search);
    void replay_searches();
    void walk(Search& search, const DirectoryList& list, Rule rule, const std::string& owner);
    void try_directory(Search& search, const ListedDirectory& entry, SearchStep& step);
    void try_rpaths(Search& search);
    void try_cache(Search& search);
    void try_system_dirs(Search& search);
    void try_path(Search& search);
    void conclude(Search& search, Outcome& outcome, bool as_dlopen);
    void record_failure(const Search& search, Outcome& outcome) const;

    const LoadState& state_;
    Directories directories_;
    FileDemands demands_;
    std::vector<std::unique_ptr<LoadedObject>> objects_;  // link-map order
    LoadedObject* program_ = nullptr;
    std::optional<DirectoryList> environment_path_;
    std::optional<LdCache> cache_;
    bool dlopening_ = false;
};

}  // namespace cudiag
