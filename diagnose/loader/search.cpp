#include "diagnose/loader/search.h"

#include <algorithm>

#include "diagnose/loader/search_session.h"
#include "diagnose/say.h"

namespace cudiag {

std::string why(const SearchStep& step) {
    switch (step.rule) {
        case Rule::already_loaded:
            return say("already loaded");
        case Rule::slash:
            return say("named by its path");
        case Rule::rpath:
            return say("DT_RPATH of {}", step.owner);
        case Rule::ld_library_path:
            return "LD_LIBRARY_PATH";
        case Rule::runpath:
            return say("DT_RUNPATH of {}", step.owner);
        case Rule::cache:
            return "ld.so.cache";
        case Rule::system_dir:
            return say("system directory");
    }
    return {};
}

const Lookup* Resolution::first_missing() const {
    const auto missing = std::find_if(lookups.begin(), lookups.end(), [](const Lookup& lookup) {
        return lookup.found.empty() && !lookup.ignorable;
    });
    return missing != lookups.end() ? &*missing : nullptr;
}

const Lookup* Resolution::lookup_of(const std::string& name) const {
    const auto found = std::find_if(lookups.begin(), lookups.end(),
                                    [&](const Lookup& lookup) { return lookup.name == name; });
    return found != lookups.end() ? &*found : nullptr;
}

Resolution resolve_dlopen(const LoadState& state, const std::string& name,
                          const std::string& caller) {
    Resolution resolution;
    SearchSession session(state);
    if (session.program() == nullptr && !state.executable.empty()) {
        Resolution before;
        session.start(state.executable);
        if (session.program() != nullptr) {
            session.map_dependencies({session.program()}, before);
        }
    }
    session.begin_dlopen();
    if (name.empty()) {
        Lookup lookup;
        lookup.found = state.executable;
        lookup.already_loaded = true;
        resolution.lookups.push_back(std::move(lookup));
        return resolution;
    }
    LoadedObject* requester = caller.empty() ? session.program() : session.object_at(caller);
    SearchSession::Outcome outcome = session.map(requester, name, true);
    resolution.lookups.push_back(std::move(outcome.lookup));
    if (outcome.fresh) {
        session.map_dependencies({outcome.object}, resolution);
    }
    return resolution;
}

Resolution resolve_program(const LoadState& state, const std::string& program,
                           const std::vector<std::string>& preloads) {
    Resolution resolution;
    LoadState fresh = state;
    fresh.modules.clear();
    SearchSession session(fresh);
    resolution.lookups.push_back(session.start(program));
    if (session.program() == nullptr) {
        return resolution;
    }
    std::vector<LoadedObject*> roots{session.program()};
    for (const std::string& preload : preloads) {
        SearchSession::Outcome outcome = session.map(session.program(), preload, false);
        outcome.lookup.ignorable = true;
        outcome.lookup.chain = session.chain_to(session.program());
        resolution.lookups.push_back(std::move(outcome.lookup));
        if (outcome.fresh) {
            roots.push_back(outcome.object);
        }
    }
    session.map_dependencies(roots, resolution);
    return resolution;
}

namespace {

// The object of loaders.front(), with its chain of loaders as given.
LoadedObject* requester_by(SearchSession& session, const LoadState& state,
                           const std::vector<std::string>& loaders) {
    if (session.program() == nullptr && !state.executable.empty()) {
        session.start(state.executable);
    }
    LoadedObject* requester = nullptr;
    LoadedObject* below = nullptr;
    for (const std::string& path : loaders) {
        const bool is_program = session.program() != nullptr && session.program()->path == path;
        LoadedObject* object = is_program ? session.program() : session.object_at(path);
        requester = requester != nullptr ? requester : object;
        if (below != nullptr && below != object) {
            below->loader = object;
        }
        below = object;
    }
    if (below != nullptr) {
        below->loader = nullptr;
    }
    return requester;
}

}  // namespace

Lookup resolve_needed(const LoadState& state, const std::string& name,
                      const std::vector<std::string>& loaders) {
    SearchSession session(state);
    LoadedObject* requester = requester_by(session, state, loaders);
    Lookup lookup = session.map(requester, name, false).lookup;
    lookup.chain.assign(loaders.rbegin(), loaders.rend());
    return lookup;
}

Lookup every_copy(const LoadState& state, const std::string& name,
                  const std::vector<std::string>& loaders) {
    SearchSession session(state);
    LoadedObject* requester = requester_by(session, state, loaders);
    Lookup lookup = session.every_copy(requester, name);
    lookup.chain.assign(loaders.rbegin(), loaders.rend());
    return lookup;
}

}  // namespace cudiag
