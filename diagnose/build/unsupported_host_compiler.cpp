// build-unsupported-host-compiler: crt/host_config.h of the toolkit refuses gcc or clang of this
// release. Judged by the two releases, not by the text: later errors of the same compile drown it.
#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "diagnose/build/fixes.h"
#include "diagnose/build/host_compiler.h"
#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"

namespace cudiag {
namespace {

// nvcc takes options from two variables too ("Environment variables" of nvcc's manual).
bool is_given(const BuildCase& c, std::initializer_list<std::string_view> options) {
    std::vector<std::string> words =
        c.nvcc() == nullptr ? std::vector<std::string>{} : c.nvcc()->argv;
    for (const char* name : {"NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"}) {
        const std::vector<std::string> more = shell_words(c.variable(name));
        words.insert(words.end(), more.begin(), more.end());
    }
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
        return std::any_of(options.begin(), options.end(),
                           [&](std::string_view option) { return word.rfind(option, 0) == 0; });
    });
}

std::string cxx_of(const HostCompiler& compiler) {
    std::string cxx = base_name(compiler.path);
    const auto at = cxx.find("gcc");
    return at != std::string::npos ? cxx.replace(at, 3, "g++") : cxx.replace(0, 5, "clang++");
}

std::string exports_for(const HostCompiler& compiler, const BuildCase& c) {
    std::string command =
        fmt::format("export CC={} CXX={}", base_name(compiler.path), cxx_of(compiler));
    if (is_given(c, {"-ccbin", "--compiler-bindir"})) {
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
    if (nvcc == nullptr || nvcc == &c.step || !toolkit || c.step.signal != 0 ||
        is_given(c, {"-allow-unsupported-compiler", "--allow-unsupported-compiler"})) {
        return std::nullopt;
    }
    return too_new_for_nvcc(c, *toolkit, host_compiler_of(c));
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
                      fmt::format("nvcc {} supports {} up to {}, and the host compiler is {} {}",
                                  known->release, host.kind, newest, host.kind, host.release));
    finding.evidence["nvcc"] = toolkit.nvcc;
    finding.evidence["nvcc_release"] = known->release;
    finding.evidence["limit"] = fmt::format("{} {}", host.kind, newest);
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
            {.text = fmt::format("{} is installed: let the build use it", installed.front().path),
             .command = exports_for(installed.front(), c)});
    } else {
        const HostCompiler wanted{
            host.kind, std::to_string(newest),
            fmt::format("{}-{}", host.kind == "gcc" ? "gcc" : "clang", newest), newest};
        const std::string packages = host.kind == "gcc" ? fmt::format("gcc-{0} g++-{0}", newest)
                                                        : fmt::format("clang-{}", newest);
        finding.fixes.push_back(
            {.text = fmt::format("install {} {} and let the build use it", host.kind, newest),
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
            fix.text += fmt::format(", which supports {} up to {}", host.kind, limit);
            finding.fixes.push_back(std::move(fix));
            break;
        }
    }
    finding.limits =
        "later errors of the same compile may be consequences; nvcc's "
        "-allow-unsupported-compiler only hides the first";
    return finding;
}

}  // namespace cudiag
