// build-incompatible-headers: pairs that no check refuses and that do not work together
// (knowledge/toolkits.json): nvcc 11.5 with gcc 11's libstdc++, CUDA 12 with glibc 2.41.
#include <fmt/core.h>
#include <gnu/libc-version.h>

#include <fstream>

#include "diagnose/build/host_compiler.h"
#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/knowledge/toolchain.h"

namespace cudiag {
namespace {

struct Partner {
    std::string kind, release, path;
};

// __GLIBC_MINOR__ of the features.h that the compile used; the machine's own glibc where that is
// not known. The preprocessor's step has read it, cudafe++ reads only what came of it.
std::string release_of_glibc_headers(const BuildStep& step) {
    for (const OpenedFile& open : step.opens) {
        if (!open.opened || base_name(open.path) != "features.h") {
            continue;
        }
        std::ifstream file{absolute_path(open.path, step.cwd)};
        constexpr std::string_view kDefine = "#define\t__GLIBC_MINOR__\t";
        for (std::string line; std::getline(file, line);) {
            if (line.rfind(kDefine, 0) == 0) {
                return "2." + line.substr(kDefine.size());
            }
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
    partners.push_back({"glibc", release_of_glibc_headers(c.step), ""});
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
                fmt::format("nvcc {} and {} {} do not work together, although no check refuses "
                            "them: {}",
                            toolkit->release, partner.kind, partner.release, pair->why));
            finding.confidence = Confidence::likely;
            finding.evidence["pair"] = pair->name;
            finding.evidence["a"] = toolkit->nvcc;
            finding.evidence["a_release"] = toolkit->release;
            finding.evidence["b"] = partner.path.empty() ? partner.kind : partner.path;
            finding.evidence["b_release"] = partner.release;
            finding.evidence["header"] = pair->header;
            finding.evidence["source"] = c.source();
            for (const std::string& remedy : pair->remedies) {
                finding.fixes.push_back({.text = remedy, .command = ""});
            }
            finding.limits =
                "inferred from the two releases: the compiler's own words are not recorded";
            return finding;
        }
    }
    return std::nullopt;
}

}  // namespace cudiag
