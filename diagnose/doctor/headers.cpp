// What a compile includes and a link asks for: are they where the compilers look?
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/build/fixes.h"
#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/doctor/predicted.h"
#include "diagnose/doctor/rules.h"
#include "diagnose/knowledge/toolchain.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

void add(Checks& checks, const char* name, Health health, std::string text,
         std::optional<Finding> finding = std::nullopt) {
    checks.push_back({.question = Question::build,
                      .name = name,
                      .health = health,
                      .text = std::move(text),
                      .observed = false,
                      .finding = std::move(finding)});
}

// The compile as it would end: the including file was read, and the name tried in each directory.
std::optional<Finding> as_a_failed_compile(const DoctorFacts& facts, const WantedHeader& missing) {
    const HostPass& pass = missing.by_nvcc ? facts.tools.nvcc_host : facts.tools.cxx;
    PredictedStep step{facts, directory_of(pass.tool.path) + "/cc1plus", missing.by_nvcc};
    if (missing.included_by.empty()) {
        step.step().argv.emplace_back("-include");
        step.step().argv.push_back(missing.header);
    } else {
        step.step().opens.push_back({missing.included_by, true});
    }
    for (const std::string& directory : pass.include_directories) {
        step.step().opens.push_back({directory + "/" + missing.header, false});
    }
    return build_missing_header(step.build_case());
}

Finding by_its_owner(const DoctorFacts& facts, const WantedHeader& missing) {
    const HostPass& pass = missing.by_nvcc ? facts.tools.nvcc_host : facts.tools.cxx;
    const PredictedStep step{facts, pass.tool.path, missing.by_nvcc};
    const BuildCase c = step.build_case();
    Finding finding =
        begin_finding(c, "build-missing-header",
                      say("{} is in none of the {} directories in which {} looks", missing.header,
                          pass.include_directories.size(), pass.tool.path));
    finding.evidence["header"] = missing.header;
    finding.evidence["included_by"] = missing.included_by;
    finding.evidence["compiler"] = pass.tool.path;
    finding.evidence["cuda_home"] = facts.tools.home.home;
    finding.evidence["cuda_release"] = facts.tools.toolkit.release;
    if (const HeaderOwner* owner = header_owner(missing.header)) {
        finding.fixes = fixes_by_packages(c, {owner}, facts.tools.toolkit.release);
    } else {
        finding.fixes.push_back(
            {.text = say("install the development files of the C and C++ libraries"),
             .command = "apt-get install g++ libc6-dev"});
    }
    return finding;
}

}  // namespace

void check_headers(const DoctorFacts& facts, Checks& checks) {
    std::vector<const WantedHeader*> missing;
    const WantedHeader* shown = nullptr;
    std::size_t wanted = 0;
    for (const WantedHeader& header : facts.tools.headers) {
        ++wanted;
        if (header.found.empty()) {
            missing.push_back(&header);
        } else if (shown == nullptr || header.header == "cusparse.h") {
            shown = &header;
        }
    }
    if (wanted == 0) {
        return;
    }
    if (missing.empty()) {
        add(checks, "headers", Health::green,
            say("all {} headers that {} include are there: {}", wanted,
                facts.torch.found() ? say("torch's own and fused_adam")
                                    : say("nvcc and its runtime"),
                shown->found));
        return;
    }
    auto finding = as_a_failed_compile(facts, *missing.front());
    if (!finding) {
        finding = by_its_owner(facts, *missing.front());
    }
    std::string names;
    for (const WantedHeader* each : missing) {
        names += (names.empty() ? "" : ", ") + each->header;
    }
    const HeaderOwner* owner = header_owner(missing.front()->header);
    const std::string whose =
        owner != nullptr && owner->cuda
            ? say("the toolkit at {} has nvcc, but not the development files: ",
                  facts.tools.home.home)
            : "";
    const std::size_t directories =
        (missing.front()->by_nvcc ? facts.tools.nvcc_host : facts.tools.cxx)
            .include_directories.size();
    add(checks, "headers", Health::red,
        missing.size() == 1
            ? say("{}{} is in none of the {} directories in which the compiler looks", whose, names,
                  directories)
            : say("{}{} are in none of the {} directories in which the compiler looks", whose,
                  names, directories),
        ahead_of_time(std::move(*finding)));
}

void check_link(const DoctorFacts& facts, Checks& checks) {
    const BuildTools& tools = facts.tools;
    if (!facts.torch.found() || !tools.cxx.tool.runs || tools.nvcc.path.empty()) {
        return;
    }
    if (!tools.cudart.empty()) {
        add(checks, "link", Health::green, say("-lcudart is {}", tools.cudart));
        return;
    }
    PredictedStep step{facts, "/usr/bin/ld", false};
    for (const std::string& directory : tools.link_directories) {
        step.step().argv.push_back("-L" + directory);
        for (const char* file : {"/libcudart.so", "/libcudart.a"}) {
            step.step().opens.push_back({directory + file, false});
        }
    }
    step.step().argv.emplace_back("-lcudart");
    auto finding = build_link_failed(step.build_case());
    add(checks, "link", Health::red,
        finding ? finding->title : say("the linker finds no libcudart.so for -lcudart"),
        finding ? std::optional{ahead_of_time(std::move(*finding))} : std::nullopt);
}

}  // namespace cudiag
