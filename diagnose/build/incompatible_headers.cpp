// build-incompatible-headers: pairs that no check refuses and that do not work together
// (knowledge/toolkits.json): nvcc 11.5 with gcc 11's libstdc++, CUDA 12 with glibc 2.41.
#include <gnu/libc-version.h>

#include <fstream>
#include <regex>

#include "diagnose/build/host_compiler.h"
#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/knowledge/toolchain.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

struct Partner {
    std::string kind, release, path;
};

// __GLIBC_MINOR__ of a features.h; "" without one.
std::string release_of_features(const std::string& file_name) {
    static const std::regex define{R"(^#\s*define\s+__GLIBC_MINOR__\s+([0-9]+))"};
    std::ifstream file{file_name};
    std::smatch match;
    for (std::string line; std::getline(file, line);) {
        if (std::regex_search(line, match, define)) {
            return "2." + match[1].str();
        }
    }
    return {};
}

// glibc of the headers that the compile used: of the first features.h in its search, else that of
// the machine.
std::string release_of_glibc_headers(const BuildCase& c) {
    std::vector<std::string> directories;
    for (const BuildStep* step : {c.nvcc(), &c.step}) {
        for (const char* option : {"-I", "-isystem"}) {
            for (const std::string& directory : values_of(step->argv, option)) {
                directories.push_back(absolute_path(directory, step->cwd));
            }
        }
    }
    directories.emplace_back("/usr/include");
    for (const std::string& directory : directories) {
        if (std::string release = release_of_features(directory + "/features.h");
            !release.empty()) {
            return release;
        }
    }
    return gnu_get_libc_version();
}

std::vector<Partner> partners_of(const BuildCase& c) {
    std::vector<Partner> partners;
    const HostCompiler host = host_compiler_of(c);
    if (!host.kind.empty()) {
        partners.push_back({host.kind, host.release, host.path});
    }
    partners.push_back({"glibc", release_of_glibc_headers(c), ""});
    return partners;
}

}  // namespace

std::optional<Finding> build_incompatible_headers(const BuildCase& c) {
    const auto toolkit = c.toolkit();
    const std::string tool = c.step.tool();
    // These read the headers of both.
    if (c.nvcc() == nullptr || !toolkit || toolkit->release.empty() || c.step.signal != 0 ||
        (tool != "cudafe++" && tool != "cc1plus" && tool != "cicc")) {
        return std::nullopt;
    }
    for (const Partner& partner : partners_of(c)) {
        for (const BadPair* pair :
             bad_pairs("nvcc", toolkit->release, partner.kind, partner.release)) {
            Finding finding = begin_finding(
                c, "build-incompatible-headers",
                say("nvcc {} and {} {} do not work together, although no check refuses "
                    "them: {}",
                    toolkit->release, partner.kind, partner.release, say_known(pair->why)));
            finding.confidence = Confidence::likely;
            finding.evidence["pair"] = pair->name;
            finding.evidence["a"] = toolkit->nvcc;
            finding.evidence["a_release"] = toolkit->release;
            finding.evidence["b"] = partner.path.empty() ? partner.kind : partner.path;
            finding.evidence["b_release"] = partner.release;
            finding.evidence["header"] = pair->header;
            finding.evidence["source"] = c.source();
            for (const std::string& remedy : pair->remedies) {
                finding.fixes.push_back({.text = say_known(remedy), .command = ""});
            }
            finding.limits =
                say("inferred from the two releases: the compiler's own words are not recorded");
            return finding;
        }
    }
    return std::nullopt;
}

}  // namespace cudiag
