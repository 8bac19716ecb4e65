#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/file_version.h"
#include "diagnose/loader/misnamed_library.h"
#include "diagnose/loader/rules.h"
#include "diagnose/loader/symbol_owner.h"
#include "diagnose/loader/wrong_copy.h"
#include "diagnose/packages/requirements.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

bool supplies(const LoaderCase& c, const std::string& path) {
    return c.error.form == ErrorForm::missing_version ? defines_version(path, c.error.version)
                                                      : exports(path, c.error.symbol);
}

// What the package of the needing file itself requires, or else the release that the symbol names.
std::vector<Fix> package_fixes(const LoaderCase& c, const std::string& soname,
                               const std::string& file, const Source& source) {
    std::vector<Fix> fixes;
    const LibraryRelease* release = library_release(soname);
    const auto user = owner_of(file);
    const auto have = source.path.empty() ? std::nullopt : owner_of(source.path);
    if (release == nullptr) {
        return fixes;
    }
    for (const Provider& provider : release->providers) {
        if (provider.manager != "pip") {
            continue;
        }
        const auto wanted = user ? requirement_on(*user, provider.package) : std::nullopt;
        const bool same_package = have && have->manager == PackageManager::pip &&
                                  normalised(have->name) == normalised(provider.package);
        if (wanted && wanted->spec.rfind("==", 0) == 0) {
            fixes.push_back({say("{} {} requires exactly this", user->name, user->version),
                             pip_install(c, shell_quoted(provider.package + wanted->spec)), false});
            return fixes;
        }
        const std::string least = version_in_symbol(release->library, c.error.symbol);
        const auto first = first_release_with(release->library, c.error.symbol);
        const std::string floor = first ? *first : least;
        if (!floor.empty() && (same_package || wanted)) {
            const int major = release->cuda_major;
            const std::string ceiling =
                major > 0 && compare_versions(floor, std::to_string(major)) >= 0
                    ? fmt::format(",<{}", major + 1)
                    : std::string{};
            fixes.push_back(
                {say("raise {} to the first release that has the symbol, {}, or a newer one",
                     provider.package, floor),
                 pip_install(c,
                             fmt::format("--upgrade '{}>={}{}'", provider.package, floor, ceiling)),
                 false});
            return fixes;
        }
    }
    return fixes;
}

// `cannot find -lcurand` is often "cured" by a link to a library that is there.
void tell_misnamed(const MisnamedLibrary& misnamed, const std::string& what, Finding& finding) {
    const std::string name = file_name(misnamed.path);
    finding.confidence = Confidence::certain;
    finding.title =
        say("{} wants {}, and was linked with a {} that is {}: nothing in the process gives it",
            file_name(finding.evidence.value("file", "")), what, name, misnamed.soname);
    finding.evidence["provider_path"] = misnamed.path;
    finding.evidence["provider_version"] = say("none: it is {}", misnamed.soname);
    finding.evidence["why_chosen"] = say("its name, when the file was linked");
    finding.evidence["misnamed"] = {{"path", misnamed.path}, {"soname", misnamed.soname}};
    finding.fixes.push_back(
        {say("take the link away, install the real lib{} for the linker (cudiag explain "
             "build-link-failed), and build anew",
             misnamed.stands_for->name),
         fmt::format("rm {}", shell_quoted(misnamed.path)), false});
    finding.limits =
        say("that the build found this file by that name is inferred from where it lies");
}

}  // namespace

std::optional<Finding> loader_symbol_version(const LoaderCase& c) {
    const bool symbol = c.error.form == ErrorForm::undefined_symbol;
    if ((!symbol && c.error.form != ErrorForm::missing_version) || c.failure.is_lookup) {
        return std::nullopt;
    }
    const std::string& file = c.error.subject;
    const std::string what = symbol ? demangle(c.error.symbol) : say("version {}", c.error.version);
    const std::string soname = expected_soname(c, file);
    if (soname.empty()) {
        Finding finding = begin_finding(
            c, "loader-symbol-version",
            say("{} wants {}, and nothing in the process gives it", file_name(file), what));
        finding.confidence = Confidence::likely;
        finding.evidence["symbol"] = c.error.symbol;
        finding.evidence["demangled"] = demangle(c.error.symbol);
        finding.evidence["file"] = file;
        if (const auto misnamed = misnamed_library(c, file, c.error.symbol)) {
            tell_misnamed(*misnamed, what, finding);
            return finding;
        }
        finding.limits =
            say("which library should give the symbol is not known: no cause established, no fix "
                "proposed");
        return finding;
    }
    const Source source = source_of(c, soname, file);
    std::vector<Copy> copies = copies_near(c, soname, source.searched);
    for (Copy& copy : copies) {
        if (copy.why_not.empty() && !supplies(c, copy.path)) {
            copy.why_not = say("lacks {} too", what);
        }
    }
    std::stable_sort(copies.begin(), copies.end(), [](const Copy& a, const Copy& b) {
        return a.why_not.empty() && !b.why_not.empty();
    });

    Finding finding = begin_finding(
        c, "loader-symbol-version",
        source.path.empty()
            ? say("{} wants {} from {}, which is nowhere", file_name(file), what, soname)
            : say("{} wants {}, and the {} it got, {}, lacks it", file_name(file), what, soname,
                  describe_file(source.path)));
    finding.evidence["symbol"] = symbol ? c.error.symbol : "";
    finding.evidence["demangled"] = symbol ? demangle(c.error.symbol) : "";
    finding.evidence["version"] = c.error.version;
    finding.evidence["file"] = file;
    finding.evidence["file_version"] = file_version(file);
    if (const auto owner = owner_of(file)) {
        finding.evidence["file_package"] =
            say("{} {} ({})", owner->name, owner->version, name_of(owner->manager));
    }
    finding.evidence["provider"] = soname;
    finding.evidence["provider_path"] = source.path;
    finding.evidence["provider_version"] = source.path.empty() ? "" : file_version(source.path);
    if (const auto owner = source.path.empty() ? std::nullopt : owner_of(source.path)) {
        finding.evidence["provider_package"] =
            say("{} {} ({})", owner->name, owner->version, name_of(owner->manager));
    }
    finding.evidence["why_chosen"] = why_chosen(source);
    finding.evidence["searched"] = searched_json(source.searched);
    finding.evidence["near_misses"] = copies_json(copies);

    // The copy that works is on disk, and the search went wrong: mend the search. Else the package
    // is too old: mend that. A search that went through the user's own LD_LIBRARY_PATH is his to
    // mend; the file's own run path is innocent.
    const bool by_user = source.step && source.step->rule == Rule::ld_library_path;
    std::vector<Fix> packages = package_fixes(c, soname, file, source);
    std::vector<Fix> search;
    for (const Copy& copy : copies) {
        if (copy.why_not.empty() && search.empty()) {
            search = fixes_for_wrong_copy(c, source, copy);
        }
    }
    finding.fixes = by_user ? search : packages;
    const std::vector<Fix>& others = by_user ? packages : search;
    if (finding.fixes.empty()) {
        finding.fixes = others;
    }
    finding.limits = say(
        "names the copy that was in use when the load failed; another process may find another");
    return finding;
}

std::optional<Finding> loader_shadowed_library(const LoaderCase& c, const Finding& symptom) {
    const std::string soname = symptom.evidence.value("provider", std::string{});
    const bool runtime = symptom.slug == "loader-libstdcxx-too-old";
    const std::string name =
        runtime ? file_name(symptom.evidence.value("in_use", std::string{})) : soname;
    if (name.empty() || (symptom.slug != "loader-symbol-version" && !runtime)) {
        return std::nullopt;
    }
    const Source source = source_of(c, name, c.error.subject);
    if (source.path.empty()) {
        return std::nullopt;
    }
    // The better copy must be one that the file would have got by its own rules: a later step of
    // the same search.
    LoadState later = c.state;
    later.modules.clear();
    if (source.step && source.step->rule == Rule::ld_library_path) {
        later.ld_library_path.clear();
    } else if (!source.mapped) {
        return std::nullopt;
    }
    const Lookup own = resolve_needed(later, name, {c.error.subject, c.process.exe});
    std::error_code error;
    if (own.found.empty() || std::filesystem::equivalent(own.found, source.path, error) ||
        !supplies(c, own.found)) {
        return std::nullopt;
    }
    const std::string rule = why_chosen(source);
    Finding finding = begin_finding(
        c, "loader-shadowed-library",
        say("{} hides the {} that {} would find by itself, {}", describe_file(source.path), name,
            file_name(c.error.subject), describe_file(own.found)));
    finding.evidence["library"] = name;
    finding.evidence["used"] = source.path;
    finding.evidence["used_version"] = file_version(source.path);
    finding.evidence["rule"] = rule;
    finding.evidence["hidden"] = own.found;
    finding.evidence["hidden_version"] = file_version(own.found);
    finding.evidence["hidden_rule"] = [&] {
        for (const SearchStep& step : own.steps) {
            if (step.matched) {
                return why(step);
            }
        }
        return std::string{};
    }();
    finding.evidence["needed_by"] = c.error.subject;
    Copy good;
    good.path = own.found;
    good.named = true;
    finding.fixes = fixes_for_wrong_copy(c, source, good);
    finding.limits = say("the nvcc in use and torch's CUDA version have no part in this");
    return finding;
}

}  // namespace cudiag
