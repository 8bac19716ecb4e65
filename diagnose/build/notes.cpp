// Notes about builds that went as they went: build-slow and build-wrong-accelerator. Only for the
// report of a run that is kept for another reason.
#include <algorithm>
#include <set>

#include "diagnose/build/fixes.h"
#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

std::uint64_t duration(const BuildStep& step) {
    return step.end_ns > step.start_ns ? step.end_ns - step.start_ns : 0;
}

Finding note_about(const BuildStep& step, const char* slug, std::string title) {
    Finding finding;
    finding.slug = slug;
    finding.severity = Severity::note;
    finding.title = std::move(title);
    finding.time_ns = step.end_ns;
    finding.pid = finding.tid = step.pid;
    finding.argv = step.argv;
    return finding;
}

}  // namespace

std::optional<Finding> build_slow(const Facts& facts) {
    constexpr std::uint64_t kLong = 30'000'000'000;  // ns
    const Build& build = facts.build;
    const BuildStep* longest = nullptr;
    std::vector<const BuildStep*> leaves;
    for (const BuildStep& step : build.steps) {
        if (build.parent_of(step) == nullptr) {
            if (longest == nullptr || duration(step) > duration(*longest)) {
                longest = &step;
            }
        } else if (step.peak_bytes > 0) {
            leaves.push_back(&step);
        }
    }
    if (longest == nullptr || duration(*longest) < kLong) {
        return std::nullopt;
    }
    std::stable_sort(leaves.begin(), leaves.end(), [](const BuildStep* a, const BuildStep* b) {
        return duration(*a) > duration(*b);
    });
    const double seconds = static_cast<double>(duration(*longest)) / 1e9;
    Finding finding =
        note_about(*longest, "build-slow",
                   say("the build by {} took {:.0f} s, compiled anew", longest->tool(), seconds));
    finding.evidence["seconds"] = seconds;
    finding.evidence["cached"] = false;
    auto steps = nlohmann::ordered_json::array();
    constexpr std::size_t kMost = 5;
    for (const BuildStep* leaf : leaves) {
        const std::string tool = leaf->tool();
        if (tool != "cc1plus" && tool != "cicc" && tool != "cudafe++" && tool != "ptxas" &&
            tool != "cc1" && tool != "ld") {
            continue;
        }
        steps.push_back({{"tool", tool}, {"seconds", static_cast<double>(duration(*leaf)) / 1e9}});
        if (steps.size() == kMost) {
            break;
        }
    }
    finding.evidence["steps"] = std::move(steps);
    const bool deepspeed =
        std::any_of(build.steps.begin(), build.steps.end(), [](const BuildStep& step) {
            return std::any_of(step.argv.begin(), step.argv.end(), [](const std::string& word) {
                return word.find("/deepspeed/ops/csrc/") != std::string::npos;
            });
        });
    const BuildCase c{.facts = facts, .step = *longest, .above = {}, .root = root_of(facts)};
    const auto package = deepspeed ? c.installed("deepspeed") : std::nullopt;
    finding.fixes.push_back(
        {.text = deepspeed
                     ? say("build its ops once, when DeepSpeed is installed, not when they are "
                           "first used (DS_BUILD_FUSED_ADAM=1)")
                     : say("keep what was built (TORCH_EXTENSIONS_DIR on a disk that outlives the "
                           "container), or build it when the image is made"),
         .command = package ? "DS_BUILD_FUSED_ADAM=1 " + anew(c, *package) : ""});
    finding.limits = say("whether the next run finds the result in a cache is not known");
    return finding;
}

std::optional<Finding> build_wrong_accelerator(const Facts& facts) {
    // DeepSpeed's builders (deepspeed 0.19, op_builder/cpu/fused_adam.py): the op of the name
    // fused_adam for its CPU accelerator is made of these.
    constexpr std::string_view kSource = "/csrc/cpu/adam/fused_adam.cpp";
    for (const BuildStep& step : facts.build.steps) {
        const auto source = argument_ending(step.argv, {kSource});
        if (!source) {
            continue;
        }
        const BuildStep* top = &step;
        for (const BuildStep* parent = facts.build.parent_of(step); parent != nullptr;
             parent = facts.build.parent_of(*parent)) {
            top = parent;
        }
        const auto given = top->environment.find("DS_ACCELERATOR");
        Finding finding = note_about(step, "build-wrong-accelerator",
                                     say("DeepSpeed builds the fused_adam of its CPU accelerator: "
                                         "nothing of it runs on a GPU"));
        finding.severity = Severity::warning;
        finding.evidence["accelerator"] = "cpu";
        finding.evidence["why"] = given == top->environment.end()
                                      ? say("DS_ACCELERATOR is not set, and DeepSpeed saw no GPU")
                                      : "DS_ACCELERATOR=" + given->second;
        finding.evidence["sources"] = *source;
        finding.fixes.push_back(
            {.text = say("where a GPU is to be used, say so (to build without one, "
                         "name its architecture too)"),
             .command = "export DS_ACCELERATOR=cuda TORCH_CUDA_ARCH_LIST=9.0"});
        finding.limits = say("whether the CPU was meant is not known");
        return finding;
    }
    return std::nullopt;
}

}  // namespace cudiag
