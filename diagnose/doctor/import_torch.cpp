// Can this environment import torch? Its files, then what ld.so says of its libraries.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "diagnose/build/words.h"
#include "diagnose/doctor/predicted.h"
#include "diagnose/doctor/rules.h"
#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/case.h"
#include "diagnose/loader/file_version.h"
#include "diagnose/loader/library_path.h"
#include "diagnose/loader/rules.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

Check red(const char* name, std::string text, std::optional<Finding> finding) {
    return {.question = Question::import,
            .name = name,
            .health = Health::red,
            .text = std::move(text),
            .observed = false,
            .finding = std::move(finding)};
}

Finding package_missing(const DoctorFacts& facts, const std::string& package, std::string title) {
    Finding finding;
    finding.slug = "package-missing";
    finding.title = std::move(title);
    finding.evidence["package"] = package;
    finding.evidence["python"] = facts.python.path;
    finding.evidence["searched"] = nlohmann::ordered_json::array();
    for (const std::string& directory : facts.python.packages) {
        finding.evidence["searched"].push_back(
            {{"dir", directory}, {"why", "sys.path"}, {"result", "absent"}});
    }
    finding.limits = say("directories that only the code in a .pth file adds are not seen");
    return finding;
}

Check no_torch(const DoctorFacts& facts) {
    Finding finding = package_missing(
        facts, "torch",
        say("torch is not installed for {} ({})", facts.python.path, facts.python.version));
    finding.evidence["others"] = facts.pythons_with_torch;
    for (const std::string& other : facts.pythons_with_torch) {
        finding.fixes.push_back({.text = say("{} has one: use that Python", other),
                                 .command = "cudiag doctor --python " + shell_quoted(other)});
    }
    finding.fixes.push_back(
        {.text = say("install it here"),
         .command = fmt::format("{} -m pip install torch", shell_quoted(facts.python.path))});
    std::string text = finding.title;
    return red("torch", std::move(text), std::move(finding));
}

Check for_another_python(const DoctorFacts& facts) {
    const TorchInstall& torch = facts.torch;
    const bool other = !torch.extension_of_another_python.empty();
    std::string text = other ? say("{} is made for another Python than {}",
                                   torch.extension_of_another_python, facts.python.version)
                             : say("{} holds no _C: torch is there in part only", torch.directory);
    Finding finding = package_missing(facts, "torch", text);
    finding.evidence["file"] = other ? torch.extension_of_another_python : torch.directory;
    finding.evidence["suffixes"] = facts.python.extension_suffixes;
    finding.fixes.push_back(
        {.text = say("install the one for this Python"),
         .command = fmt::format("{} -m pip install --force-reinstall --no-deps torch{}",
                                shell_quoted(facts.python.path),
                                torch.version.empty()
                                    ? ""
                                    : "==" + torch.version.substr(0, torch.version.find('+')))});
    return red("torch", std::move(text), std::move(finding));
}

Check missing_module(const DoctorFacts& facts, const std::string& module, Question question,
                     const char* importer) {
    std::string package = module;
    std::replace(package.begin(), package.end(), '_', '-');
    std::string text = say("{} is not installed, and {} imports it at once", package, importer);
    Finding finding = package_missing(facts, package, text);
    finding.fixes.push_back(
        {.text = say("install it for this Python"),
         .command = fmt::format("{} -m pip install {}", shell_quoted(facts.python.path), package)});
    Check check = red("torch-modules", std::move(text), std::move(finding));
    check.question = question;
    return check;
}

// Libraries that LD_LIBRARY_PATH gives although the wheels of torch bring their own.
std::optional<Check> shadowed(const DoctorFacts& facts) {
    const std::string path = facts.variable("LD_LIBRARY_PATH");
    const std::vector<std::string> entries = library_path_entries(path);
    for (const Module& module : facts.import_trial.modules) {
        const std::string name = base_name(module.path);
        const std::string directory = directory_of(module.path);
        const bool chosen =
            std::any_of(entries.begin(), entries.end(),
                        [&](const std::string& entry) { return same_directory(entry, directory); });
        if (!chosen || library_family(name).empty()) {
            continue;
        }
        const LibraryRelease* release = library_release(name);
        for (const std::string& packages : facts.python.packages) {
            for (const std::string& below :
                 release == nullptr ? std::vector<std::string>{} : release->pip_directories) {
                const std::string own = packages + "/" + below + "/" + name;
                std::error_code error;
                if (!std::filesystem::exists(own, error) ||
                    std::filesystem::equivalent(own, module.path, error)) {
                    continue;
                }
                Finding finding;
                finding.slug = "loader-shadowed-library";
                finding.severity = Severity::warning;
                finding.title = say("LD_LIBRARY_PATH gives torch {}, although its wheel brings {}",
                                    describe_file(module.path), describe_file(own));
                finding.evidence["library"] = name;
                finding.evidence["used"] = module.path;
                finding.evidence["used_version"] = file_version(module.path);
                finding.evidence["rule"] = "LD_LIBRARY_PATH";
                finding.evidence["hidden"] = own;
                finding.evidence["hidden_version"] = file_version(own);
                finding.evidence["hidden_rule"] = say("torch's wheels");
                finding.evidence["needed_by"] = facts.torch.extension;
                const std::string rest = without_directory(path, directory);
                finding.fixes.push_back(
                    {.text = say("take {} out of LD_LIBRARY_PATH", directory),
                     .command = rest.empty() ? "unset LD_LIBRARY_PATH"
                                             : "export LD_LIBRARY_PATH=" + shell_quoted(rest)});
                finding.limits = say(
                    "it loads all the same, as ld.so says; whether the two releases behave alike "
                    "is not known");
                std::string text = finding.title;
                return Check{.question = Question::import,
                             .name = "library-path",
                             .health = Health::yellow,
                             .text = std::move(text),
                             .observed = false,
                             .finding = std::move(finding)};
            }
        }
    }
    return std::nullopt;
}

std::string words_of(const TorchInstall& torch) {
    return say("torch {} ({}) in {}", torch.version,
               !torch.cuda.empty()  ? "CUDA " + torch.cuda
               : !torch.hip.empty() ? "ROCm " + torch.hip
                                    : say("without CUDA"),
               torch.directory);
}

}  // namespace

void check_torch(const DoctorFacts& facts, Checks& checks) {
    const TorchInstall& torch = facts.torch;
    if (!facts.python.answered()) {
        checks.push_back(red("python",
                             say("{} does not run: {}", facts.python.path, facts.python.problem),
                             std::nullopt));
        return;
    }
    if (!torch.found()) {
        checks.push_back(no_torch(facts));
        return;
    }
    if (torch.extension.empty()) {
        checks.push_back(for_another_python(facts));
        return;
    }
    for (const std::string& module : torch.missing_modules) {
        checks.push_back(missing_module(facts, module, Question::import, "torch"));
    }
    for (const std::string& module : torch.missing_for_builds) {
        checks.push_back(
            missing_module(facts, module, Question::build, "torch.utils.cpp_extension"));
    }
    checks.push_back({.question = Question::import,
                      .name = "torch",
                      .health = Health::green,
                      .text = words_of(torch),
                      .observed = false,
                      .finding = std::nullopt});
}

void check_torch_libraries(const DoctorFacts& facts, Checks& checks) {
    const LoadTrial& trial = facts.import_trial;
    if (facts.torch.extension.empty()) {
        return;
    }
    if (!trial.ran) {
        checks.push_back(
            {.question = Question::import,
             .name = "torch-libraries",
             .health = Health::unknown,
             .text = say("ld.so could not be asked about torch's libraries: {}", trial.why_not),
             .observed = false,
             .finding = std::nullopt});
        return;
    }
    if (!trial.works()) {
        const Module python{.path = facts.python.executable,
                            .base = 0,
                            .tls_bytes = 0,
                            .device = 0,
                            .inode = 0,
                            .shim = false};
        auto finding = explained_load(facts, facts.torch.extension, trial, {python});
        const std::string others =
            trial.problems > 1 ? say(" (and {} more)", trial.problems - 1) : "";
        std::string text = (finding ? finding->title : trial.error) + others;
        checks.push_back(red("torch-libraries", std::move(text), std::move(finding)));
        return;
    }
    checks.push_back({.question = Question::import,
                      .name = "torch-libraries",
                      .health = Health::green,
                      .text = say("ld.so finds all {} libraries that torch loads, and every symbol "
                                  "(dry run)",
                                  trial.modules.size()),
                      .observed = false,
                      .finding = std::nullopt});
    if (auto check = shadowed(facts)) {
        checks.push_back(std::move(*check));
    }
    Process process = facts.process();
    process.snapshots[1] = trial.modules;
    for (Finding& finding : loader_two_runtimes(process)) {
        std::string text = finding.title;
        checks.push_back({.question = Question::import,
                          .name = "two-runtimes",
                          .health = Health::yellow,
                          .text = std::move(text),
                          .observed = false,
                          .finding = ahead_of_time(std::move(finding))});
    }
}

void check_mixed_wheels(const DoctorFacts& facts, Checks& checks) {
    if (facts.shared_paths.empty()) {
        return;
    }
    const SharedPath& shared = facts.shared_paths.front();
    Finding finding;
    finding.slug = "package-broken";
    finding.severity = Severity::warning;
    finding.title = say("{} have both written {}: the one that was installed last won",
                        shared.packages, shared.path);
    finding.evidence["package"] = shared.packages;
    finding.evidence["path"] = shared.path;
    finding.evidence["what_it_is"] = describe_file(shared.path);
    if (!shared.wanted.empty()) {
        finding.fixes.push_back(
            {.text = say("take the other one out, and install that for torch's CUDA again"),
             .command = fmt::format("{} -m pip install --force-reinstall --no-deps '{}'",
                                    shell_quoted(facts.python.path), shared.wanted)});
    }
    finding.limits = say(
        "it loads, if torch's libraries were found above; whether it is of the right release is "
        "seen by what it is");
    std::string text = finding.title;
    checks.push_back({.question = Question::import,
                      .name = "mixed-wheels",
                      .health = Health::yellow,
                      .text = std::move(text),
                      .observed = false,
                      .finding = std::move(finding)});
}

}  // namespace cudiag
