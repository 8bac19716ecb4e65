// One failed load with all that the loader rules ask about it: the text in parts, the process as it
// was, and what the model of ld.so says of that very dlopen. Rules take a case and give perhaps a
// finding.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/facts.h"
#include "diagnose/loader/dry_run.h"
#include "diagnose/loader/error_text.h"
#include "diagnose/loader/search.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/machine.h"

namespace cudiag {

struct LoaderCase {
    const Process& process;
    const LoadFailure& failure;
    const Machine& machine;
    const std::vector<Module>& modules;  // mapped when the load failed
    LoaderError error;
    LoadState state;
    Resolution resolution;
};

// The process as ld.so sees it: its interpreter, LD_LIBRARY_PATH at the start, and the given
// modules as mapped.
LoadState load_state_of(const Process& process, const std::vector<Module>& modules);

// `process`, `failure` and `machine` must outlive the case.
LoaderCase make_case(const Process& process, const LoadFailure& failure, const Machine& machine);

// The object the program asked for, as a file: its path if it was asked by path or was found; "" if
// nowhere.
std::string asked_file(const LoaderCase& c);

// A finding with everything filled in that every finding of this failure shares: who, when, where,
// severity.
Finding begin_finding(const LoaderCase& c, const char* slug, std::string title);

// Where a SONAME came from, or would come from, for the file that needs it.
struct Source {
    std::string path;                // "" if nowhere
    bool mapped = false;             // it was in the process already
    std::string brought_by;          // the first module that needs it: whose search chose the path
    std::optional<SearchStep> step;  // the rule that chose it, if the model can tell
    std::vector<SearchStep> searched;  // every place looked in, in order
};

Source source_of(const LoaderCase& c, const std::string& soname, const std::string& needed_by);

// Copies of a library around the process and in every directory that was searched for it.
std::vector<Copy> copies_near(const LoaderCase& c, const std::string& soname,
                              const std::vector<SearchStep>& searched);

// [{"dir", "why", "result"}…], as findings.md has it.
nlohmann::ordered_json searched_json(const std::vector<SearchStep>& steps);
nlohmann::ordered_json copies_json(const std::vector<Copy>& copies, std::size_t most = 12);

// Would the load succeed with this value of LD_LIBRARY_PATH? Asked twice: of the model, and of
// ld.so by a dry run that starts from what the process had mapped, less what the new value would
// have chosen otherwise.
bool proved_with_library_path(const LoaderCase& c, const std::string& value);

// Remedies, best first, for "SOURCE was chosen, but GOOD is the copy that works".
std::vector<Fix> fixes_for_wrong_copy(const LoaderCase& c, const Source& source, const Copy& good);

// Base name of a path, for titles.
std::string file_name(const std::string& path);

// pip's command for this process's interpreter: "/venv/bin/python -m pip install ARGS".
std::string pip_install(const LoaderCase& c, const std::string& arguments);

}  // namespace cudiag
