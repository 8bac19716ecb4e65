#include <fmt/core.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>

#include "diagnose/loader/rules.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

struct Verdict {
    std::string what;     // what the file is: "an AArch64, 64-bit library"
    std::string problem;  // value of evidence.problem
    std::vector<Fix> fixes;
};

std::string reinstall_command(const LoaderCase& c, const std::string& path) {
    const auto owner = owner_of(path);
    if (!owner) {
        return {};
    }
    switch (owner->manager) {
        case PackageManager::pip:
            return pip_install(c, fmt::format("--force-reinstall --no-deps --no-cache-dir '{}=={}'",
                                              owner->name, owner->version));
        case PackageManager::conda:
            return fmt::format("conda install --force-reinstall {}", owner->name);
        case PackageManager::dpkg:
            return fmt::format("sudo apt install --reinstall {}", owner->name);
        case PackageManager::rpm:
            return fmt::format("sudo dnf reinstall {}", owner->name);
    }
    return {};
}

Fix replace_file(const LoaderCase& c, const std::string& path, std::string text) {
    return {std::move(text), reinstall_command(c, path), false};
}

std::optional<Verdict> judge_file(const LoaderCase& c, const std::string& path) {
    const ElfRead read = read_elf(path);
    switch (read.problem) {
        case ElfProblem::none:
            break;
        case ElfProblem::absent:
            return std::nullopt;
        case ElfProblem::unreadable:
            return Verdict{
                say("not readable: {}", read.detail),
                "permission",
                {{say("let this user read it"), "chmod a+r " + shell_quoted(path), false}}};
        case ElfProblem::is_directory:
            return Verdict{say("a directory"), say("not a file"), {}};
        case ElfProblem::empty:
            return Verdict{
                say("an empty file"),
                "empty",
                {replace_file(c, path, say("install it again: nothing of it is there"))}};
        case ElfProblem::truncated:
            return Verdict{
                say("cut short: {}", read.detail),
                "truncated",
                {replace_file(c, path, say("install it again: the copy was not completed"))}};
        case ElfProblem::not_elf:
        case ElfProblem::damaged:
            return Verdict{say("no ELF file: {}", read.detail),
                           say("not ELF"),
                           {replace_file(c, path, say("put the real library in its place"))}};
        case ElfProblem::linker_script:
            return Verdict{
                say("a linker script, for ld at build time: {}", read.detail),
                say("linker script"),
                {{say("load the versioned library (the name with .so.N) instead"), "", false}}};
    }
    if (read.file->machine != host_machine() || read.file->bits != 8 * sizeof(void*)) {
        return Verdict{
            say("built for {}, and this process is {}",
                machine_name(read.file->machine, read.file->bits),
                machine_name(host_machine(), 8 * sizeof(void*))),
            "machine",
            {replace_file(c, path, say("install the build for this machine's architecture"))}};
    }

    struct statvfs system {};

    if (c.error.form == ErrorForm::cannot_map && statvfs(path.c_str(), &system) == 0 &&
        (system.f_flag & ST_NOEXEC) != 0) {
        return Verdict{
            say("on a file system that is mounted noexec"),
            "noexec",
            {{say("keep it on a file system that may execute (for JIT builds: "
                  "TORCH_EXTENSIONS_DIR, "
                  "TMPDIR)"),
              fmt::format("mount -o remount,exec \"$(findmnt -no TARGET -T {})\"   # as root",
                          shell_quoted(path)),
              false}}};
    }
    if (c.error.form == ErrorForm::cannot_open || c.error.form == ErrorForm::cannot_map) {
        return Verdict{say("not usable for this process: {}", c.error.detail), "refused", {}};
    }
    return std::nullopt;
}

}  // namespace

std::optional<Finding> loader_wrong_architecture(const LoaderCase& c) {
    switch (c.error.form) {
        case ErrorForm::missing_file:  // ld.so says so of a file of another machine too
        case ErrorForm::cannot_open:
        case ErrorForm::wrong_class:
        case ErrorForm::not_elf:
        case ErrorForm::cannot_map:
            break;
        default:
            return std::nullopt;
    }
    // For a bare name, glibc's text names the file only where it gave up at it.
    std::string path = c.error.subject;
    if (path.find('/') == std::string::npos) {
        const Lookup* lookup = c.resolution.lookup_of(path);
        path.clear();
        if (lookup != nullptr) {
            for (const SearchStep& step : lookup->steps) {
                for (const std::string& file : step.tried) {
                    std::error_code error;
                    if (path.empty() && fs::exists(file, error)) {
                        path = file;
                    }
                }
            }
        }
    } else if (fs::path{path}.is_relative()) {
        path = (fs::path{c.process.cwd} / path).string();
    }
    if (path.empty()) {
        return std::nullopt;
    }
    const auto verdict = judge_file(c, path);
    if (!verdict) {
        return std::nullopt;
    }
    Finding finding =
        begin_finding(c, "loader-wrong-architecture", say("{} is {}", path, verdict->what));
    finding.evidence["file"] = path;
    finding.evidence["problem"] = verdict->problem;
    finding.evidence["what_it_is"] = verdict->what;
    if (const auto owner = owner_of(path)) {
        finding.evidence["package"] =
            say("{} {} ({})", owner->name, owner->version, name_of(owner->manager));
    }
    finding.fixes = verdict->fixes;
    finding.fixes.erase(std::remove_if(finding.fixes.begin(), finding.fixes.end(),
                                       [](const Fix& fix) { return fix.text.empty(); }),
                        finding.fixes.end());
    finding.limits =
        say("says what the file is now; it may have been another when the load failed");
    return finding;
}

}  // namespace cudiag
