// What ld.so itself says of a search (LD_DEBUG=libs), as a list of events, and the model's answer
// in the same terms.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "diagnose/loader/loader_run.h"
#include "diagnose/loader/search.h"

namespace cudiag {

struct LoaderTrace {
    std::vector<std::string> events;  // "find NAME", "cache", "try PATH"
    std::vector<std::string> mapped;  // "NAME|PATH" or "NAME|not found", in ld.so's order
    std::string error;  // "error while loading shared libraries: …", without the prefix
    bool ran = false;
};

namespace trace_text {

inline bool begins(const std::string& text, const std::string& with) {
    return text.compare(0, with.size(), with) == 0;
}

// "     12345:\t  trying file=/x" -> "  trying file=/x"
inline std::string without_pid(const std::string& line) {
    const std::size_t tab = line.find(":\t");
    return tab == std::string::npos ? std::string{} : line.substr(tab + 2);
}

inline std::string joined(const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) {
        text += (text.empty() ? "" : ":") + part;
    }
    return text;
}

inline std::string differing(const std::vector<std::string>& real,
                             const std::vector<std::string>& model, const char* what) {
    for (std::size_t i = 0; i < std::max(real.size(), model.size()); ++i) {
        const std::string theirs = i < real.size() ? real[i] : "(end)";
        const std::string ours = i < model.size() ? model[i] : "(end)";
        if (theirs != ours) {
            return std::string(what) + " " + std::to_string(i) + ": ld.so '" + theirs +
                   "', model '" + ours + "'";
        }
    }
    return {};
}

}  // namespace trace_text

// Events of LD_DEBUG=libs, up to the first constructor; only what follows the line `after`, if that
// is not "".
inline std::vector<std::string> events_in(const std::string& debug, const std::string& after = "") {
    std::vector<std::string> events;
    bool listening = after.empty();
    std::istringstream stream(debug);
    for (std::string line; std::getline(stream, line);) {
        if (!listening) {
            listening = line == after;
            continue;
        }
        const std::string text = trace_text::without_pid(line);
        if (trace_text::begins(text, "calling init: ")) {
            break;
        }
        if (trace_text::begins(text, "find library=")) {
            events.push_back("find " + text.substr(13, text.find(" [") - 13));
        } else if (trace_text::begins(text, " search cache=")) {
            events.emplace_back("cache");
        } else if (trace_text::begins(text, "  trying file=")) {
            events.push_back("try " + text.substr(14));
        }
    }
    return events;
}

// `ld.so FILE`, traced: nothing of the file is executed.
inline LoaderTrace trace_file(const LoadState& state, const std::string& file,
                              const std::vector<std::string>& preloads = {}) {
    LoaderTrace trace;
    std::vector<std::string> environment{"LD_TRACE_LOADED_OBJECTS=1", "LD_DEBUG=libs"};
    if (!state.ld_library_path.empty()) {
        environment.push_back("LD_LIBRARY_PATH=" + state.ld_library_path);
    }
    if (!preloads.empty()) {
        environment.push_back("LD_PRELOAD=" + trace_text::joined(preloads));
    }
    const LoaderRun run = run_loader({state.config.interpreter, file}, environment, state.cwd, 60);
    trace.ran = run.started && !run.timed_out;
    trace.events = events_in(run.err);
    std::istringstream listing(run.out);
    for (std::string line; std::getline(listing, line);) {
        const std::size_t arrow = line.find(" => ");
        const std::size_t address = line.rfind(" (0x");
        if (line.empty() || line.front() != '\t' ||
            (arrow == std::string::npos && address == std::string::npos)) {
            continue;  // "statically linked"
        }
        const std::string name = line.substr(1, std::min(arrow, address) - 1);
        const std::string path =
            arrow == std::string::npos ? name : line.substr(arrow + 4, address - arrow - 4);
        if (path != state.config.interpreter && name.find("linux-vdso") == std::string::npos) {
            trace.mapped.push_back(name + "|" + path);
        }
    }
    const std::string prefix = ": error while loading shared libraries: ";
    const std::size_t error = run.err.find(prefix);
    if (error != std::string::npos) {
        trace.error = run.err.substr(error + prefix.size(),
                                     run.err.find('\n', error) - error - prefix.size());
        trace.mapped.clear();
    }
    return trace;
}

// The same from a resolution.
inline LoaderTrace model_trace(const Resolution& resolution) {
    LoaderTrace trace;
    trace.ran = true;
    for (const Lookup& lookup : resolution.lookups) {
        const bool searched = !lookup.steps.empty() &&
                              lookup.steps.front().rule != Rule::already_loaded &&
                              lookup.steps.front().rule != Rule::slash;
        if (searched) {
            trace.events.push_back("find " + lookup.name);
        }
        for (const SearchStep& step : lookup.steps) {
            if (step.rule == Rule::cache) {
                trace.events.emplace_back("cache");
            }
            if (step.rule == Rule::slash || step.rule == Rule::already_loaded) {
                continue;
            }
            for (const std::string& path : step.tried) {
                trace.events.push_back("try " + path);
            }
        }
        if (&lookup == &resolution.lookups.front()) {
            continue;  // the program or the dlopened name itself
        }
        if (lookup.found.empty() && lookup.ignorable) {
            continue;
        }
        if (!lookup.found.empty() && !lookup.already_loaded) {
            trace.mapped.push_back(lookup.name + "|" + lookup.found);
        } else if (lookup.found.empty() &&
                   lookup.error.find("cannot open shared object file") == 0) {
            trace.mapped.push_back(lookup.name + "|not found");
        } else if (lookup.found.empty() && lookup.error.find("wrong ELF class") == 0) {
            trace.mapped.push_back(lookup.name + "|not found");
        } else if (lookup.found.empty()) {
            trace.error = lookup.error;
            trace.mapped.clear();
        }
    }
    return trace;
}

// "" when equal, else the first difference in words.
inline std::string first_difference(const LoaderTrace& real, const LoaderTrace& model) {
    const std::string events = trace_text::differing(real.events, model.events, "event");
    if (!events.empty()) {
        return events;
    }
    const std::string mapped = trace_text::differing(real.mapped, model.mapped, "mapped");
    if (!mapped.empty()) {
        return mapped;
    }
    // ld.so names the file before its complaint, the model only complains.
    if (real.error.empty() != model.error.empty() ||
        real.error.find(model.error) == std::string::npos) {
        return "error: ld.so '" + real.error + "', model '" + model.error + "'";
    }
    return {};
}

}  // namespace cudiag
