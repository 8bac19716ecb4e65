// Can what was built be loaded, and what would be built here?
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/build/words.h"
#include "diagnose/doctor/predicted.h"
#include "diagnose/doctor/rules.h"
#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/case.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

void add(Checks& checks, const char* name, Health health, std::string text,
         std::optional<Finding> finding = std::nullopt) {
    checks.push_back({.question = Question::load,
                      .name = name,
                      .health = health,
                      .text = std::move(text),
                      .observed = false,
                      .finding = std::move(finding)});
}

bool is_mapped_by_torch(const DoctorFacts& facts, const std::string& soname) {
    return std::any_of(facts.import_trial.modules.begin(), facts.import_trial.modules.end(),
                       [&](const Module& module) { return base_name(module.path) == soname; });
}

std::string remedy_for(const Extension& extension) {
    return "rm -r " + shell_quoted(directory_of(extension.path));
}

void check_one(const DoctorFacts& facts, const Extension& extension, Checks& checks) {
    const std::string whose = extension.cached ? say("torch's cache of builds") : extension.package;
    if (!extension.trial.ran) {
        add(checks, "extension", Health::unknown,
            say("{} ({}) could not be tried: {}", extension.path, whose, extension.trial.why_not));
        return;
    }
    auto finding =
        explained_load(facts, extension.path, extension.trial, facts.import_trial.modules);
    std::string text = say("{}: {}", whose, finding ? finding->title : extension.trial.error);
    if (extension.cached && !extension.built_by_this_torch) {
        // Its build is written anew, with other paths in it, and ninja then compiles again.
        if (finding) {
            finding->severity = Severity::warning;
        }
        add(checks, "cached-extension", Health::yellow,
            text + say("; torch builds it anew, since its headers lie elsewhere now"),
            std::move(finding));
        return;
    }
    if (extension.cached && finding) {
        finding->fixes.insert(finding->fixes.begin(),
                              {.text = say("throw it away: it is then built anew"),
                               .command = remedy_for(extension)});
    }
    add(checks, extension.cached ? "cached-extension" : "extension", Health::red, std::move(text),
        std::move(finding));
}

}  // namespace

void check_built_runtime(const DoctorFacts& facts, Checks& checks) {
    const std::string& soname = facts.tools.cudart_soname;
    if (!facts.import_trial.works() || soname.empty() || facts.torch.cuda.empty()) {
        return;
    }
    if (is_mapped_by_torch(facts, soname)) {
        add(checks, "built-runtime", Health::green,
            say("what is built here needs {}, which torch has loaded", soname));
        return;
    }
    const LoadState state = load_state_of(facts.process(), {});
    const Lookup lookup = resolve_needed(state, soname, {state.executable});
    if (lookup.found.empty()) {
        LoadTrial trial = facts.import_trial;
        trial.error = soname + ": cannot open shared object file: No such file or directory";
        auto finding = explained_load(facts, facts.torch.extension, trial, {});
        add(checks, "built-runtime", Health::red,
            say("what is built here needs {} ({}), and ld.so finds none: torch loads the "
                "runtime of CUDA {}",
                soname, facts.tools.cudart, facts.torch.cuda),
            std::move(finding));
        return;
    }
    Finding finding;
    finding.slug = "loader-two-runtimes";
    finding.severity = Severity::warning;
    finding.title = say("what is built here loads {} beside the CUDA {} runtime of torch",
                        lookup.found, facts.torch.cuda);
    finding.evidence["library"] = "cudart";
    finding.evidence["copies"] = {{{"path", lookup.found}}, {{"path", facts.launch.runtime}}};
    finding.fixes.push_back(
        {.text = say("build with a toolkit of CUDA {}", facts.torch.cuda), .command = ""});
    finding.limits = say("whether handles are passed from one to the other is not known");
    std::string text = finding.title;
    add(checks, "built-runtime", Health::yellow, std::move(text), std::move(finding));
}

void check_extensions(const DoctorFacts& facts, Checks& checks) {
    if (!facts.import_trial.works()) {
        return;
    }
    std::size_t good = 0;
    for (const Extension& extension : facts.extensions) {
        if (extension.trial.works()) {
            ++good;
        } else {
            check_one(facts, extension, checks);
        }
    }
    if (good > 0) {
        add(checks, "extensions", Health::green,
            say("{} compiled modules that use torch find all that they need (dry run)", good));
    } else if (facts.extensions.empty()) {
        add(checks, "extensions", Health::green,
            say("no compiled module is installed that uses torch, and none is cached"));
    }
}

}  // namespace cudiag
