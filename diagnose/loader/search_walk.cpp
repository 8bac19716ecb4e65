// One request on its way through the places, in ld.so's order (glibc: _dl_map_object, open_path).
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "diagnose/loader/config.h"
#include "diagnose/loader/search_session.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// How telling a result is, when several files of one directory were tried.
int weight(const std::string& result) {
    if (result == "found") {
        return 5;
    }
    if (result == "absent") {
        return 1;
    }
    return result == "permission denied" ? 2 : 3;
}

SearchStep step_in(const ListedDirectory& entry, Rule rule, const std::string& owner) {
    SearchStep step;
    step.rule = rule;
    step.owner = owner;
    step.raw = entry.raw;
    step.dir = entry.directory->name;
    if (step.dir.size() > 1) {
        step.dir.pop_back();
    }
    return step;
}

SearchStep already_loaded(const LoadedObject& object, const std::string& result) {
    SearchStep step;
    step.rule = Rule::already_loaded;
    step.dir = object.path;
    step.result = result;
    step.matched = true;
    return step;
}

}  // namespace

struct SearchSession::Search {
    LoadedObject* requester = nullptr;
    std::string name;
    Lookup lookup;
    int error_number = ENOENT;
    bool other_class = false;
    bool list_ended = false;  // by an error that ends the list of directories at hand
    bool every = false;       // go on after a match, to see all copies
    bool done = false;        // found or rejected
    Candidate last;           // the one that ended it
    std::string path;

    bool offer(const Candidate& candidate, const std::string& candidate_path) {
        other_class = other_class || candidate.other_class;
        error_number = candidate.error_number;
        if (candidate.verdict != Verdict::passed_over && !every) {
            done = true;
            last = candidate;
            path = candidate_path;
        }
        return done;
    }
};

void SearchSession::try_directory(Search& search, const ListedDirectory& entry, SearchStep& step) {
    Directory& directory = *entry.directory;
    bool any = false;
    step.result = say("no such directory");
    for (std::size_t i = 0; i < directory.subdirs.size() && !search.done && !step.matched; ++i) {
        if (directory.subdirs[i] == Existence::missing) {
            continue;
        }
        const std::string& subdir = state_.config.hwcaps[i];
        const std::string place = directory.name + subdir;
        const std::string path =
            directory.name + (subdir.empty() ? "" : subdir + "/") + search.name;
        step.tried.push_back(path);
        const Candidate candidate = examine(on_disk(path), demands_);
        search.offer(candidate, path);
        if (directory.subdirs[i] == Existence::unknown && candidate.verdict != Verdict::rejected) {
            struct stat status = {};
            const bool usable = candidate.verdict == Verdict::usable;
            const int outcome = usable ? 0 : stat(place.c_str(), &status);
            search.error_number = outcome != 0 ? errno : search.error_number;
            directory.subdirs[i] = usable || (outcome == 0 && S_ISDIR(status.st_mode))
                                       ? Existence::existing
                                       : Existence::missing;
        }
        step.matched = candidate.verdict == Verdict::usable;
        const bool exists = directory.subdirs[i] != Existence::missing;
        any = any || exists;
        if (exists && (step.result == "no such directory" ||
                       weight(candidate.result) > weight(step.result))) {
            step.result = candidate.result;
        }
    }
    // Anything but an absent or forbidden file ends this list, though not the search (glibc 2.39
    // lets ENOTDIR pass).
    const int error = search.error_number;
    const bool harmless = error == ENOENT || error == EACCES || error == 0 ||
                          (error == ENOTDIR && glibc_at_least(state_.config, 39));
    if (any && !search.done && !search.every && !harmless) {
        search.list_ended = true;
    }
}

void SearchSession::walk(Search& search, const DirectoryList& list, Rule rule,
                         const std::string& owner) {
    search.list_ended = false;
    for (const ListedDirectory& entry : list) {
        if (search.done || search.list_ended) {
            return;
        }
        SearchStep step = step_in(entry, rule, owner);
        try_directory(search, entry, step);
        search.lookup.steps.push_back(std::move(step));
    }
}

// DT_RPATH of the requester and of those that led to it, then of the program; none at all if the
// requester has RUNPATH.
void SearchSession::try_rpaths(Search& search) {
    if (search.requester != nullptr && search.requester->elf.runpath) {
        return;
    }
    bool did_program = false;
    std::size_t depth = 0;
    for (LoadedObject* object = search.requester; object != nullptr && depth <= objects_.size();
         object = object->loader, ++depth) {
        walk(search, rpath_of(object), Rule::rpath, object->path);
        if (search.done) {
            return;
        }
        did_program = did_program || object == program_;
    }
    if (!did_program && program_ != nullptr) {
        walk(search, rpath_of(program_), Rule::rpath, program_->path);
    }
}

void SearchSession::try_cache(Search& search) {
    const LoadedObject* asker = search.requester != nullptr ? search.requester : program_;
    if (!cache_) {
        cache_ = LdCache::read(state_.config.cache_path);
    }
    SearchStep step;
    step.rule = Rule::cache;
    step.dir = state_.config.cache_path;
    step.result = say("absent");
    const std::string path = cache_->find(search.name, cache_taste(state_.config));
    const bool barred = !path.empty() && asker != nullptr && asker->elf.no_default_lib() &&
                        std::any_of(state_.config.system_dirs.begin(),
                                    state_.config.system_dirs.end(), [&](const std::string& dir) {
                                        return path.compare(0, dir.size() + 1, dir + "/") == 0;
                                    });
    if (!path.empty()) {
        step.tried.push_back(path);
    }
    if (barred) {
        step.result = say("in a system directory, which DF_1_NODEFLIB forbids");
    } else if (!path.empty()) {
        const Candidate candidate = examine(on_disk(path), demands_);
        search.offer(candidate, path);
        step.result = candidate.result;
        step.matched = candidate.verdict == Verdict::usable;
    }
    search.lookup.steps.push_back(std::move(step));
}

void SearchSession::try_system_dirs(Search& search) {
    const LoadedObject* asker = search.requester != nullptr ? search.requester : program_;
    if (asker != nullptr && asker->elf.no_default_lib()) {
        return;
    }
    DirectoryList list;
    for (const std::string& dir : state_.config.system_dirs) {
        list.push_back({directories_.get(dir == "/" ? dir : dir + "/"), dir});
    }
    walk(search, list, Rule::system_dir, "");
}

void SearchSession::try_path(Search& search) {
    SearchStep step;
    step.rule = Rule::slash;
    step.raw = search.name;
    const std::optional<std::string> path = expand(search.name, tokens_of(search.requester));
    if (path && !path->empty()) {
        const Candidate candidate = examine(on_disk(*path), demands_);
        search.offer(candidate, *path);
        step.dir = path->substr(0, std::max<std::size_t>(path->rfind('/'), 1));
        step.tried.push_back(*path);
        step.result = candidate.result;
        step.matched = candidate.verdict == Verdict::usable;
    } else {
        step.result = say("absent");
    }
    search.lookup.steps.push_back(std::move(step));
}

void SearchSession::record_failure(const Search& search, Outcome& outcome) const {
    Lookup& lookup = outcome.lookup;
    if (search.done) {
        outcome.rejected = true;
        lookup.error = search.last.error;
    } else if (search.other_class) {
        lookup.error =
            demands_.bits == 64 ? "wrong ELF class: ELFCLASS32" : "wrong ELF class: ELFCLASS64";
    } else {
        lookup.error = cannot_open(search.error_number);
    }
}

void SearchSession::conclude(Search& search, Outcome& outcome, bool as_dlopen) {
    const auto same_file = [&](const std::unique_ptr<LoadedObject>& object) {
        return !object->program && object->inode == search.last.inode &&
               object->device == search.last.device;
    };
    const auto twin = std::find_if(objects_.begin(), objects_.end(), same_file);
    if (twin != objects_.end()) {
        outcome.object = twin->get();
        outcome.object->names.push_back(search.name);
        outcome.lookup.found = outcome.object->path;
        outcome.lookup.already_loaded = true;
        outcome.lookup.steps.push_back(
            already_loaded(*outcome.object, say("the same file, under another name")));
        return;
    }
    std::optional<ElfFile> elf = read_elf(on_disk(search.path)).file;
    if (!elf) {
        elf.emplace();
    }
    constexpr std::uint64_t kPie = 0x08000000;
    constexpr std::uint64_t kNoOpen = 0x40;
    if ((elf->flags1 & kPie) != 0) {
        search.last.error = "cannot dynamically load position-independent executable";
    } else if ((elf->flags1 & kNoOpen) != 0 && dlopening_) {
        search.last.error = "shared object cannot be dlopen()ed";
    }
    if (!search.last.error.empty()) {
        outcome.lookup.steps.back().matched = false;
        outcome.lookup.steps.back().result = search.last.error;
        record_failure(search, outcome);
        return;
    }
    outcome.object = add(search.path, search.name, as_dlopen ? nullptr : search.requester, *elf);
    outcome.object->device = search.last.device;
    outcome.object->inode = search.last.inode;
    outcome.fresh = true;
    outcome.lookup.found = search.path;
}

void SearchSession::seek(Search& search) {
    if (search.name.find('/') != std::string::npos) {
        try_path(search);
        return;
    }
    try_rpaths(search);
    if (!search.done) {
        walk(search, environment_path(), Rule::ld_library_path, "");
    }
    if (!search.done && search.requester != nullptr) {
        walk(search, runpath_of(search.requester), Rule::runpath, search.requester->path);
    }
    if (!search.done) {
        try_cache(search);
    }
    if (!search.done) {
        try_system_dirs(search);
    }
}

Lookup SearchSession::every_copy(LoadedObject* requester, const std::string& name) {
    Search search;
    search.requester = requester;
    search.name = name;
    search.every = true;
    seek(search);
    Lookup lookup = std::move(search.lookup);
    lookup.name = name;
    lookup.requested_by = requester != nullptr ? requester->path : "";
    for (const SearchStep& step : lookup.steps) {
        if (step.matched) {
            lookup.found = step.tried.back();
            break;
        }
    }
    return lookup;
}

// A process that has mapped its modules knows which directories are missing, and does not try them
// again.
void SearchSession::replay_searches() {
    for (const auto& object : objects_) {
        if (object->loader != nullptr && !object->asked.empty()) {
            Search search;
            search.requester = object->loader;
            search.name = object->asked;
            seek(search);
        }
    }
}

SearchSession::Outcome SearchSession::map(LoadedObject* requester, const std::string& name,
                                          bool as_dlopen) {
    Outcome outcome;
    Search search;
    search.requester = requester;
    search.name = name;
    search.lookup.name = name;
    search.lookup.requested_by = requester != nullptr && !as_dlopen ? requester->path : "";
    if (LoadedObject* loaded = find_loaded(name)) {
        search.lookup.steps.push_back(already_loaded(*loaded, say("found")));
        search.lookup.found = loaded->path;
        search.lookup.already_loaded = true;
        outcome.lookup = std::move(search.lookup);
        outcome.object = loaded;
        return outcome;
    }
    seek(search);
    outcome.lookup = std::move(search.lookup);
    if (search.done && search.last.verdict == Verdict::usable) {
        conclude(search, outcome, as_dlopen);
    } else {
        record_failure(search, outcome);
    }
    return outcome;
}

}  // namespace cudiag
