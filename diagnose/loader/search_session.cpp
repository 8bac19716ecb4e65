#include "diagnose/loader/search_session.h"

#include <limits.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <set>

#include "diagnose/loader/config.h"

namespace cudiag {
namespace {

std::string directory_part(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == 0 ? "/" : path.substr(0, slash);
}

std::string base_name(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

std::string real_path(const std::string& path) {
    char buffer[PATH_MAX];
    return realpath(path.c_str(), buffer) != nullptr ? std::string(buffer) : path;
}

bool contains(const std::vector<std::string>& texts, const std::string& text) {
    return std::find(texts.begin(), texts.end(), text) != texts.end();
}

ElfFile elf_or_nothing(const std::string& on_disk, const std::string& path) {
    std::optional<ElfFile> elf = read_elf(on_disk).file;
    if (!elf) {
        // Gone from the disk, or never there (linux-vdso.so.1): its name is all that is known.
        elf.emplace();
        elf->soname = base_name(path);
    }
    return std::move(*elf);
}

}  // namespace

SearchSession::SearchSession(const LoadState& state)
    : state_{state}, directories_{state.config.hwcaps.size()} {
    const std::optional<ElfFile> interpreter = read_elf(state.config.interpreter).file;
    demands_.machine = interpreter ? interpreter->machine : host_machine();
    demands_.bits = interpreter ? interpreter->bits : 64;
    demands_.kernel = glibc_at_least(state.config, 36) ? 0 : running_kernel();
    add_modules();
    add_interpreter();
}

std::string SearchSession::on_disk(const std::string& path) const {
    return !path.empty() && path.front() != '/' && !state_.cwd.empty() ? state_.cwd + "/" + path
                                                                       : path;
}

std::optional<std::string> SearchSession::origin_of(const std::string& path) const {
    const std::string absolute = on_disk(path);
    return !absolute.empty() && absolute.front() == '/' ? std::optional(directory_part(absolute))
                                                        : std::nullopt;
}

LoadedObject* SearchSession::add(const std::string& path, const std::string& requested,
                                 LoadedObject* loader, const ElfFile& elf) {
    auto object = std::make_unique<LoadedObject>();
    object->path = path;
    if (!requested.empty()) {
        object->names.push_back(requested);
    }
    object->origin = origin_of(path);
    object->elf = elf;
    object->loader = loader;
    objects_.push_back(std::move(object));
    return objects_.back().get();
}

void SearchSession::add_modules() {
    for (const Module& module : state_.modules) {
        const bool first = objects_.empty();
        const std::string path = first && module.path.empty() ? state_.executable : module.path;
        if (path.empty()) {
            continue;
        }
        LoadedObject* object = add(path, "", nullptr, elf_or_nothing(on_disk(path), path));
        object->from_process = true;
        object->device = module.device;
        object->inode = module.inode;
        struct stat status = {};
        if (module.inode == 0 && stat(on_disk(path).c_str(), &status) == 0) {
            object->device = status.st_dev;
            object->inode = status.st_ino;
        }
        if (first) {
            object->program = true;
            object->origin = directory_part(real_path(on_disk(path)));
            program_ = object;
        }
    }
    infer_loaders();
    replay_searches();
}

// Who loaded a module is not recorded, but follows from the order: the earliest module that needs
// it, if that came before it; what nobody before it needs was dlopened. The names by which modules
// asked for it are known from the same.
void SearchSession::infer_loaders() {
    std::map<std::string, LoadedObject*> first_needer;
    for (const auto& object : objects_) {
        if (object->program) {
            for (const std::string& name : object->elf.needed) {
                first_needer.emplace(name, object.get());
            }
            continue;
        }
        for (const std::string& name :
             {object->elf.soname, base_name(object->path), object->path}) {
            const auto needer = first_needer.find(name);
            if (!name.empty() && needer != first_needer.end()) {
                object->loader = needer->second;
                object->asked = name;
                break;
            }
        }
        for (const std::string& name : object->elf.needed) {
            first_needer.emplace(name, object.get());
        }
    }
    for (const auto& object : objects_) {
        if (first_needer.count(base_name(object->path)) != 0) {
            object->names.push_back(base_name(object->path));
        }
    }
}

void SearchSession::add_interpreter() {
    const std::string& path = state_.config.interpreter;
    if (path.empty() || find_loaded(path) != nullptr || find_loaded(base_name(path)) != nullptr) {
        return;
    }
    LoadedObject* object = add(path, path, nullptr, elf_or_nothing(path, path));
    object->from_process = true;
    struct stat status = {};
    if (stat(path.c_str(), &status) == 0) {
        object->device = status.st_dev;
        object->inode = status.st_ino;
    }
}

Lookup SearchSession::start(const std::string& program) {
    Lookup lookup;
    lookup.name = program;
    FileDemands demands = demands_;
    demands.as_program = true;
    const Candidate candidate = examine(on_disk(program), demands);
    SearchStep step;
    step.rule = Rule::slash;
    step.dir = directory_part(program);
    step.tried = {program};
    step.result = candidate.result;
    step.matched = candidate.verdict == Verdict::usable;
    lookup.steps.push_back(step);
    if (!step.matched) {
        lookup.error =
            candidate.error.empty() ? cannot_open(candidate.error_number) : candidate.error;
        return lookup;
    }
    lookup.found = program;
    auto object = std::make_unique<LoadedObject>();
    object->path = program;
    object->elf = elf_or_nothing(on_disk(program), program);
    object->program = true;
    // The kernel gives ld.so a program's true path by /proc/self/exe; `ld.so FILE` takes the name
    // as it stands until glibc 2.42.
    const bool true_path = object->elf.executable() || glibc_at_least(state_.config, 42);
    object->origin = true_path ? directory_part(real_path(on_disk(program))) : origin_of(program);
    program_ = object.get();
    objects_.insert(objects_.begin(), std::move(object));
    return lookup;
}

void SearchSession::begin_dlopen() {
    for (const auto& object : objects_) {
        object->from_process = true;
    }
    dlopening_ = true;
}

LoadedObject* SearchSession::object_at(const std::string& path) {
    struct stat status = {};
    const bool there = stat(on_disk(path).c_str(), &status) == 0;
    for (const auto& object : objects_) {
        const bool same_file =
            there && object->inode == status.st_ino && object->device == status.st_dev;
        if (object->path == path || same_file) {
            return object.get();
        }
    }
    LoadedObject* object = add(path, "", nullptr, elf_or_nothing(on_disk(path), path));
    object->from_process = true;
    object->device = status.st_dev;
    object->inode = status.st_ino;
    return object;
}

LoadedObject* SearchSession::find_loaded(const std::string& name) const {
    for (const auto& object : objects_) {
        // The program's own path is no name of it: ld.so knows it as "".
        if ((object->path == name && !object->program) || contains(object->names, name) ||
            object->elf.soname == name) {
            return object.get();
        }
    }
    return nullptr;
}

Tokens SearchSession::tokens_of(const LoadedObject* object) const {
    const auto known = [](const std::string& text) {
        return text.empty() ? std::nullopt : std::optional(text);
    };
    return {object != nullptr ? object->origin : std::nullopt, known(state_.config.lib),
            known(state_.config.platform)};
}

const DirectoryList& SearchSession::rpath_of(LoadedObject* object) {
    if (!object->rpath) {
        // A DT_RUNPATH, even an empty one, makes ld.so forget the DT_RPATH beside it.
        const bool counts =
            object->elf.rpath && !object->elf.runpath && !object->elf.rpath->empty();
        object->rpath = counts ? directories_.list(*object->elf.rpath, ":", tokens_of(object))
                               : DirectoryList{};
    }
    return *object->rpath;
}

const DirectoryList& SearchSession::runpath_of(LoadedObject* object) {
    if (!object->runpath) {
        const bool counts = object->elf.runpath && !object->elf.runpath->empty();
        object->runpath = counts ? directories_.list(*object->elf.runpath, ":", tokens_of(object))
                                 : DirectoryList{};
    }
    return *object->runpath;
}

const DirectoryList& SearchSession::environment_path() {
    if (!environment_path_) {
        environment_path_ =
            state_.ld_library_path.empty()
                ? DirectoryList{}
                : directories_.list(state_.ld_library_path, ":;", tokens_of(program_));
    }
    return *environment_path_;
}

std::vector<std::string> SearchSession::chain_to(const LoadedObject* object) const {
    std::vector<std::string> chain;
    for (; object != nullptr && chain.size() <= objects_.size(); object = object->loader) {
        chain.insert(chain.begin(), object->path);
    }
    return chain;
}

bool SearchSession::map_all(LoadedObject* object, const std::vector<std::string>& names,
                            bool ignorable, Resolution& resolution,
                            std::vector<LoadedObject*>& fresh) {
    for (const std::string& raw : names) {
        const std::optional<std::string> name = expand(raw, tokens_of(object));
        if (!name || name->empty()) {
            continue;  // ld.so passes over a DT_NEEDED whose token has no value
        }
        Outcome outcome = map(object, *name, false);
        outcome.lookup.chain = chain_to(object);
        outcome.lookup.ignorable = ignorable;
        resolution.lookups.push_back(std::move(outcome.lookup));
        if (outcome.rejected && !ignorable) {
            return false;
        }
        if (outcome.object != nullptr && !outcome.object->from_process) {
            fresh.push_back(outcome.object);
        }
    }
    return true;
}

void SearchSession::map_dependencies(const std::vector<LoadedObject*>& roots,
                                     Resolution& resolution) {
    std::deque<LoadedObject*> waiting(roots.begin(), roots.end());
    std::set<LoadedObject*> listed(roots.begin(), roots.end());
    std::vector<LoadedObject*> order;
    bool whole = true;
    while (!waiting.empty() && whole) {
        LoadedObject* object = waiting.front();
        waiting.pop_front();
        order.push_back(object);
        std::vector<LoadedObject*> found;
        // Linkers write DT_NEEDED before the rest, so the order of the dynamic section is kept.
        whole = map_all(object, object->elf.needed, false, resolution, found) &&
                map_all(object, object->elf.auxiliary, true, resolution, found) &&
                map_all(object, object->elf.filters, false, resolution, found);
        for (LoadedObject* dependency : found) {
            if (listed.insert(dependency).second) {
                waiting.push_back(dependency);
            }
        }
    }
    for (const LoadedObject* object : order) {
        check_versions(*object, resolution);
    }
}

LoadedObject* SearchSession::find_for_version(const std::string& name) const {
    for (const auto& object : objects_) {
        if ((object->path == name && !object->program) || contains(object->names, name)) {
            return object.get();
        }
    }
    return find_loaded(name);
}

void SearchSession::check_versions(const LoadedObject& object, Resolution& resolution) const {
    for (const NeededVersion& needed : object.elf.needed_versions) {
        const LoadedObject* provider = find_for_version(needed.file);
        if (provider == nullptr || contains(provider->elf.defined_versions, needed.version) ||
            provider->elf.base_version == needed.version) {
            continue;
        }
        resolution.clashes.push_back(
            {object.path, provider->path, needed.version, !provider->elf.versioned, needed.weak});
    }
}

}  // namespace cudiag
