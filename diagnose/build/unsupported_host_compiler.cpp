// build-unsupported-host-compiler: crt/host_config.h of the toolkit refuses gcc or clang of this
// release. Judged by the two releases, not by the text: later errors of the same compile drown it.
// Where the build was told to go on regardless, by the file that the compiler's errors are about.
#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <regex>
#include <string_view>

#include "diagnose/build/fixes.h"
#include "diagnose/build/host_compiler.h"
#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// Where an option of nvcc's comes from: its command line, or one of the two variables that it takes
// options from too ("Environment variables" of its manual); "" if it is not given.
std::string given_by(const BuildCase& c, std::initializer_list<std::string_view> options) {
    const auto among = [&](const std::vector<std::string>& words) {
        return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
            return std::any_of(options.begin(), options.end(),
                               [&](std::string_view option) { return word.rfind(option, 0) == 0; });
        });
    };
    if (c.nvcc() != nullptr && among(c.nvcc()->argv)) {
        return say("nvcc's command line");
    }
    for (const char* name : {"NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"}) {
        if (among(shell_words(c.variable(name)))) {
            return name;
        }
    }
    return {};
}

// The header of the host compiler's own library that the first error of a host pass is about; "" if
// it is about another file. What nvcc hands to this pass has been preprocessed, but for what it
// adds itself, and gcc reads all that before it parses: what it opens then are files that line
// markers name, to show a line of each under an error.
std::string header_of_first_error(const BuildCase& c) {
    static const std::regex of_libstdcxx{R"(/include/(?:[^/]+/)?c\+\+/)"};
    static const std::regex made_by_nvcc{R"(\.cudafe1\.cpp$)"};
    static const std::regex added_by_nvcc{R"(\.(?:stub|fatbin)\.c$|/fatbinary_section\.h$)"};
    const auto is_made_by_nvcc = [](const std::string& word) {
        return std::regex_search(word, made_by_nvcc);
    };
    const auto was_added = [](const OpenedFile& file) {
        return file.opened && std::regex_search(file.path, added_by_nvcc);
    };
    const std::vector<OpenedFile>& opens = c.step.opens;
    const auto last_added = std::find_if(opens.rbegin(), opens.rend(), was_added);
    if (last_added == opens.rend() ||
        std::none_of(c.step.argv.begin(), c.step.argv.end(), is_made_by_nvcc)) {
        return {};
    }
    const auto shown = std::find_if(last_added.base(), opens.end(),
                                    [](const OpenedFile& file) { return file.opened; });
    return shown != opens.end() && std::regex_search(shown->path, of_libstdcxx) ? shown->path : "";
}

std::string cxx_of(const HostCompiler& compiler) {
    std::string cxx = base_name(compiler.path);
    const auto at = cxx.find("gcc");
    return at != std::string::npos ? cxx.replace(at, 3, "g++") : cxx.replace(0, 5, "clang++");
}

std::string exports_for(const HostCompiler& compiler, const BuildCase& c) {
    std::string command =
        fmt::format("export CC={} CXX={}", base_name(compiler.path), cxx_of(compiler));
    if (!given_by(c, {"-ccbin", "--compiler-bindir"}).empty()) {
        return command;  // it goes before a variable
    }
    return command +
           fmt::format(" NVCC_PREPEND_FLAGS={}-ccbin {}{}",
                       c.variable("NVCC_PREPEND_FLAGS").empty() ? "'" : "\"", cxx_of(compiler),
                       c.variable("NVCC_PREPEND_FLAGS").empty() ? "'" : " $NVCC_PREPEND_FLAGS\"");
}

}  // namespace

std::optional<Finding> build_unsupported_host_compiler(const BuildCase& c) {
    const BuildStep* nvcc = c.nvcc();
    const auto toolkit = c.toolkit();
    if (nvcc == nullptr || nvcc == &c.step || !toolkit || c.step.signal != 0) {
        return std::nullopt;
    }
    const HostCompiler host = host_compiler_of(c);
    const std::string allowed_by =
        given_by(c, {"-allow-unsupported-compiler", "--allow-unsupported-compiler"});
    if (allowed_by.empty()) {
        return too_new_for_nvcc(c, *toolkit, host);
    }
    const std::string header = header_of_first_error(c);
    auto finding = header.empty() ? std::nullopt : too_new_for_nvcc(c, *toolkit, host);
    if (finding) {
        finding->confidence = Confidence::likely;
        finding->title = say(
            "nvcc {} was told to accept {} {}, which it does not support, and what it made of that "
            "compiler's {} cannot be compiled",
            toolkit->release, host.kind, host.release, base_name(header));
        finding->evidence["allowed_by"] = allowed_by;
        finding->evidence["header"] = header;
        finding->limits = say(
            "inferred from the two releases and from the file that the first error is about: the "
            "compiler's own words are not recorded");
    }
    return finding;
}

std::optional<Finding> too_new_for_nvcc(const BuildCase& c, const Toolkit& toolkit,
                                        const HostCompiler& host) {
    const ToolkitRelease* known = toolkit_release(toolkit.release);
    if (known == nullptr || host.kind.empty()) {
        return std::nullopt;
    }
    const int newest = host.kind == "gcc" ? known->gcc_newest : known->clang_newest;
    if (newest == 0 || host.major <= newest) {
        return std::nullopt;
    }
    Finding finding =
        begin_finding(c, "build-unsupported-host-compiler",
                      say("nvcc {} supports {} up to {}, and the host compiler is {} {}",
                          known->release, host.kind, newest, host.kind, host.release));
    finding.evidence["nvcc"] = toolkit.nvcc;
    finding.evidence["nvcc_release"] = known->release;
    finding.evidence["limit"] = say("{} {}", host.kind, newest);
    finding.evidence["host_compiler"] = host.path;
    finding.evidence["host_release"] = host.release;
    finding.evidence["source"] = c.source();
    std::vector<std::string> others;
    const std::vector<HostCompiler> installed =
        installed_up_to(host.kind, newest, c.variable("PATH"));
    others.reserve(installed.size());
    for (const HostCompiler& other : installed) {
        others.push_back(other.path);
    }
    finding.evidence["others"] = others;
    if (!installed.empty()) {
        finding.fixes.push_back(
            {.text = say("{} is installed: let the build use it", installed.front().path),
             .command = exports_for(installed.front(), c)});
    } else {
        const HostCompiler wanted{
            host.kind, std::to_string(newest),
            fmt::format("{}-{}", host.kind == "gcc" ? "gcc" : "clang", newest), newest};
        const std::string packages = host.kind == "gcc" ? fmt::format("gcc-{0} g++-{0}", newest)
                                                        : fmt::format("clang-{}", newest);
        finding.fixes.push_back(
            {.text = say("install {} {} and let the build use it", host.kind, newest),
             .command =
                 fmt::format("apt-get install -y {} && {}", packages, exports_for(wanted, c))});
    }
    for (const Toolkit& other : c.toolkits()) {
        const ToolkitRelease* release = toolkit_release(other.release);
        const int limit = release == nullptr   ? 0
                          : host.kind == "gcc" ? release->gcc_newest
                                               : release->clang_newest;
        if (limit >= host.major) {
            Fix fix = fix_by_cuda_home(other);
            fix.text += say(", which supports {} up to {}", host.kind, limit);
            finding.fixes.push_back(std::move(fix));
            break;
        }
    }
    finding.limits =
        say("later errors of the same compile may be consequences; nvcc's "
            "-allow-unsupported-compiler only hides the first");
    return finding;
}

}  // namespace cudiag
