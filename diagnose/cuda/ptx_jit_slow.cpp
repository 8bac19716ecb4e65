#include <algorithm>
#include <map>
#include <set>

#include "diagnose/cuda/compute_cache.h"
#include "diagnose/cuda/device_code.h"
#include "diagnose/cuda/gpu.h"
#include "diagnose/cuda/running_rules.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// What people notice; a kernel of usual size takes a tenth of it.
constexpr std::uint64_t kLongNs = 1'000'000'000;

// One file, or image in memory, whose code the driver compiled.
struct Compiled {
    CodeInQuestion code;
    int sm = 0;
    std::string gpu;
    std::uint64_t duration_ns = 0;
    const SlowCode* longest = nullptr;
    std::set<std::string> calls;
    std::set<std::string> kernels;
};

double seconds_of(std::uint64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / 1e9;
}

// Did the driver have to compile it? Code that runs as it is is only read; what was made in memory
// tells it only if it was PTX.
bool was_compiled(const CodeInQuestion& code, const SlowCode& slow, int sm, bool forced) {
    if (code.in_memory) {
        return slow.code_kind == "PTX";
    }
    bool as_it_is = false;
    bool after_jit = false;
    for (const DeviceCode& one : code.code) {
        as_it_is = as_it_is || runs_on(one, sm) == Runs::as_it_is;
        after_jit = after_jit || runs_on(one, sm) == Runs::after_jit;
    }
    return after_jit && (!as_it_is || forced);
}

bool is_set(const Process& process, const char* name) {
    const auto found = process.environment.find(name);
    return found != process.environment.end() && found->second == "1";
}

// The longest first.
std::vector<Compiled> compiled_of(const Process& process) {
    const bool forced = is_set(process, "CUDA_FORCE_PTX_JIT");
    std::map<std::pair<std::string, std::uint64_t>, Compiled> found;
    for (const SlowCode& slow : process.slow_code) {
        const int sm = slow.device ? slow.device->compute_capability() : 0;
        if (sm == 0) {
            continue;
        }
        Compiled& one = found[{slow.file, slow.address}];
        if (one.longest == nullptr) {
            one.code = code_of(slow, process);
            one.sm = sm;
            one.gpu = slow.device->name;
        }
        if (!was_compiled(one.code, slow, sm, forced)) {
            continue;
        }
        one.duration_ns += slow.duration_ns;
        one.calls.insert(slow.call);
        if (!slow.kernel.empty()) {
            one.kernels.insert(brief_kernel_name(slow.kernel));
        }
        if (one.longest == nullptr || slow.duration_ns > one.longest->duration_ns) {
            one.longest = &slow;
        }
    }
    std::vector<Compiled> list;
    for (auto& [place, one] : found) {
        if (one.longest != nullptr) {
            list.push_back(std::move(one));
        }
    }
    std::stable_sort(list.begin(), list.end(), [](const Compiled& a, const Compiled& b) {
        return a.duration_ns > b.duration_ns;
    });
    return list;
}

nlohmann::ordered_json json_of(const Compiled& one) {
    nlohmann::ordered_json json;
    json["file"] =
        one.code.in_memory ? say("none: it was made while the program ran") : one.code.file;
    json["seconds"] = seconds_of(one.duration_ns);
    json["calls"] = one.calls;
    json["architectures"] = one.code.code.empty() ? "PTX" : device_code_words(one.code.code);
    json["of"] = one.code.in_memory || one.code.exact ? say("the image that was compiled")
                                                      : say("the whole file");
    if (!one.kernels.empty()) {
        json["kernels"] = one.kernels;
    }
    if (!one.code.packaged.empty()) {
        json["package"] = one.code.packaged;
    }
    return json;
}

void add_fixes(const Compiled& first, const ComputeCache& cache, bool forced, Finding& finding) {
    if (forced) {
        finding.fixes.push_back({say("let the driver take the code that is there for this GPU"),
                                 "unset CUDA_FORCE_PTX_JIT", false});
    }
    if (cache.off) {
        finding.fixes.push_back(
            {say("let the driver keep what it has compiled: then only the first "
                 "start takes that long"),
             "unset CUDA_CACHE_DISABLE", false});
    } else if (!cache.directory.empty() && !cache.writable) {
        finding.fixes.push_back(
            {say("give the driver a directory that it can write and that stays, "
                 "to keep what it has compiled"),
             "export CUDA_CACHE_PATH=$HOME/.nv/ComputeCache", false});
    } else if (cache.nearly_full()) {
        finding.fixes.push_back({say("give the driver's cache more room: what was compiled once is "
                                     "thrown out of it again"),
                                 "export CUDA_CACHE_MAXSIZE=4294967296", false});
    }
    if (!forced && !first.code.in_memory && first.code.package.empty()) {
        finding.fixes.push_back(build_for(first.code, first.sm));
    } else if (!forced && !first.code.in_memory) {
        finding.fixes.push_back(
            {say("install a release of {} that has code for sm_{}", first.code.package, first.sm),
             "", false});
    }
}

}  // namespace

std::optional<Finding> cuda_ptx_jit_slow(const Process& process) {
    const std::vector<Compiled> all = compiled_of(process);
    std::uint64_t total_ns = 0;
    for (const Compiled& one : all) {
        total_ns += one.duration_ns;
    }
    if (all.empty() || total_ns < kLongNs) {
        return std::nullopt;
    }
    const Compiled& first = all.front();
    const bool forced = is_set(process, "CUDA_FORCE_PTX_JIT");
    const ComputeCache cache = compute_cache_of(process);
    Finding finding;
    finding.slug = "cuda-ptx-jit-slow";
    finding.severity = Severity::warning;
    const bool exact = std::all_of(all.begin(), all.end(), [](const Compiled& one) {
        return one.code.exact || one.code.in_memory;
    });
    finding.confidence = exact ? Confidence::certain : Confidence::likely;
    finding.title =
        say("the driver compiled PTX for {:.1f} s: {}", seconds_of(total_ns),
            first.code.in_memory ? say("it was handed PTX that was made while the program ran")
            : forced             ? say("CUDA_FORCE_PTX_JIT=1 tells it to")
                     : say("{} has no code for sm_{}, only {}", code_text(first.code), first.sm,
                           device_code_words(first.code.code)));
    finding.pid = process.pid;
    finding.tid = first.longest->tid;
    finding.argv = process.argv;
    finding.time_ns = first.longest->time_ns;
    finding.python = first.longest->python;
    finding.evidence["seconds"] = seconds_of(total_ns);
    auto modules = nlohmann::ordered_json::array();
    constexpr std::size_t kMost = 16;
    for (std::size_t i = 0; i < all.size() && i < kMost; ++i) {
        modules.push_back(json_of(all[i]));
    }
    finding.evidence["modules"] = std::move(modules);
    finding.evidence["gpu"] = first.gpu;
    finding.evidence["compute_capability"] = capability_text(first.sm);
    finding.evidence["cache"] = cache.words();
    add_fixes(first, cache, forced, finding);
    finding.limits =
        say("the time is that of the driver's calls that took 0.1 s and more; a launch "
            "may have waited for room in its queue too");
    if (!exact) {
        finding.limits +=
            say("; which code of the file this was is not known: a part of it may have "
                "been built for fewer architectures");
    }
    if (!cache.off) {
        finding.limits +=
            say("; the cache is as it is now, and whether the next start finds there "
                "what was compiled is not known");
    }
    return finding;
}

}  // namespace cudiag
