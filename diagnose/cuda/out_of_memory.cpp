#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "diagnose/cuda/gpu.h"
#include "diagnose/cuda/running_rules.h"
#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/cuda_figures.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/say.h"
#include "diagnose/units.h"

namespace cudiag {
namespace {

constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY

using Bytes = std::optional<std::uint64_t>;

struct OtherProcess {
    std::uint64_t pid = 0;
    std::uint64_t bytes = 0;
};

struct Memory {
    Bytes asked, free, total;
    Bytes used_here;    // by this process
    Bytes allocated;    // in use, of what the framework holds
    Bytes unallocated;  // held by the framework, and not in use
    Bytes limit;        // that the program has set for itself
    std::vector<OtherProcess> others;
    bool one_may_be_this = false;  // `others` may have this process under the host's number
};

// The words in full: what is shown of them is one line.
std::string message_of(const RunningCase& c) {
    for (const PythonException& exception : c.process.exceptions) {
        if (cuda_code_told_by(exception.message) == kOutOfMemory) {
            return exception.message;
        }
    }
    return c.told.error;
}

std::uint64_t number_of(const std::string& text) {
    std::uint64_t number = 0;
    static_cast<void>(std::from_chars(text.data(), text.data() + text.size(), number));
    return number;
}

Memory told_by(const std::string& message) {
    struct Amount {
        const char* key;
        Bytes Memory::*member;
    };

    constexpr Amount kAmounts[] = {
        {"asked", &Memory::asked},         {"free", &Memory::free},
        {"total", &Memory::total},         {"used_here", &Memory::used_here},
        {"allocated", &Memory::allocated}, {"unallocated", &Memory::unallocated},
        {"limit", &Memory::limit}};
    Memory memory;
    for (const TextValues& figures : figures_of(message)) {
        for (const Amount& amount : kAmounts) {
            if (const auto found = figures.find(amount.key); found != figures.end()) {
                memory.*amount.member = bytes_in(found->second);
            }
        }
        const auto pid = figures.find("process");
        const auto used = figures.find("used_by_process");
        if (pid != figures.end() && used != figures.end()) {
            memory.others.push_back({number_of(pid->second), bytes_in(used->second).value_or(0)});
        }
    }
    return memory;
}

// Where NVML does not know what a process uses it says -1, and that is handed on; CuPy without a
// limit may write 2^64 - 1.
void forget_impossible(Memory& memory) {
    const auto forget = [&](Bytes& amount) {
        if (memory.total && amount && *amount > *memory.total) {
            amount.reset();
        }
    };
    forget(memory.used_here);
    forget(memory.limit);
    constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;
    if (memory.limit && *memory.limit >= kNoLimit) {
        memory.limit.reset();
    }
    std::erase_if(memory.others, [&](const OtherProcess& other) {
        return other.bytes == 0 || (memory.total && other.bytes > *memory.total);
    });
}

// torch tells processes by NVML's numbers, which are the host's: in a container it does not know
// itself among them. A process that uses less than torch itself holds is another one for sure.
void know_itself(Memory& memory) {
    if (memory.used_here || memory.others.empty()) {
        return;
    }
    const std::uint64_t own = memory.allocated.value_or(0) + memory.unallocated.value_or(0);
    for (const OtherProcess& other : memory.others) {
        memory.one_may_be_this = memory.one_may_be_this || other.bytes >= own;
    }
}

// The failed call is the one that the text is about, as far as can be seen: programs try again with
// less, and survive such calls.
bool is_about(const FailedCudaCall& call, const RunningCase& c, const Memory& told) {
    constexpr std::uint64_t kJustBefore = 10'000'000'000;  // ns
    const bool recent = c.told.time_ns == 0 || c.told.time_ns < call.time_ns + kJustBefore;
    const bool fits = !told.asked || !call.bytes_asked || *call.bytes_asked >= *told.asked;
    return recent && fits;
}

Memory memory_of(const RunningCase& c) {
    Memory memory = told_by(message_of(c));
    if (c.failed != nullptr && is_about(*c.failed, c, memory)) {
        const auto add = [](Bytes& to, const Bytes& from) {
            if (!to) {
                to = from;
            }
        };
        add(memory.asked, c.failed->bytes_asked);
        add(memory.free, c.failed->bytes_free);
        add(memory.total, c.failed->bytes_total);
    }
    forget_impossible(memory);
    know_itself(memory);
    return memory;
}

// As far as the text counts them; else what is neither free nor this process's, if that is more
// than the driver takes for itself.
std::uint64_t held_by_others(const Memory& memory) {
    std::uint64_t sum = 0;
    for (const OtherProcess& other : memory.others) {
        sum += other.bytes;
    }
    constexpr std::uint64_t kOfTheDriver = 10;  // at most a tenth of the GPU's memory
    const std::uint64_t known = memory.free.value_or(0) + memory.used_here.value_or(0);
    if (sum == 0 && memory.total && memory.free && memory.used_here && *memory.total > known &&
        *memory.total - known > *memory.total / kOfTheDriver) {
        return *memory.total - known;
    }
    return sum;
}

constexpr const char* kWhoHoldsIt =
    "nvidia-smi --query-compute-apps=pid,used_memory,name,gpu_uuid --format=csv";

std::string free_text(const Memory& memory) {
    return memory.total ? say("{} of {} are free", bytes_text(memory.free.value_or(0)),
                              bytes_text(*memory.total))
                        : say("{} are free", bytes_text(memory.free.value_or(0)));
}

// Managed memory may be larger than the GPU's: it is paged.
bool is_managed(const RunningCase& c) {
    return c.failed != nullptr && c.failed->name == "cuMemAllocManaged";
}

// What is known of the cause: a title, and perhaps a fix.
struct Cause {
    std::string title;
    std::vector<Fix> fixes;
    std::string limits;
};

using CauseOf = std::optional<Cause> (*)(const Memory&, const RunningCase&);

std::optional<Cause> larger_than_the_gpu(const Memory& memory, const RunningCase& c) {
    if (!memory.asked || !memory.total || *memory.asked <= *memory.total || is_managed(c)) {
        return std::nullopt;
    }
    return Cause{
        .title = say("{} were asked for at once, and the GPU has {} in all: they "
                     "fit at no time",
                     bytes_text(*memory.asked), bytes_text(*memory.total)),
        .fixes = {{say("look at the sizes that make up this one allocation: a shape that is "
                       "wrong, or a batch or sequence that must be worked off in parts"),
                   "", false}},
        .limits = ""};
}

std::optional<Cause> own_limit(const Memory& memory, const RunningCase& /*c*/) {
    if (!memory.asked || !memory.limit ||
        *memory.asked <= *memory.limit - std::min(*memory.limit, memory.allocated.value_or(0))) {
        return std::nullopt;
    }
    return Cause{.title = say("{} more would have exceeded the limit of {} that the program "
                              "has set for itself",
                              bytes_text(*memory.asked), bytes_text(*memory.limit)),
                 .fixes = {{say("raise or drop the program's own limit: "
                                "torch.cuda.set_per_process_memory_fraction() in torch, "
                                "MemoryPool.set_limit() or CUPY_GPU_MEMORY_LIMIT in CuPy"),
                            "", false}},
                 .limits = ""};
}

// What torch's allocator is to be told, by what it was told at the start; nothing where that would
// change nothing.
std::optional<Fix> growing_segments(const Process& process) {
    constexpr const char* kVariable = "PYTORCH_CUDA_ALLOC_CONF";
    constexpr std::string_view kOn = "expandable_segments:True";
    constexpr std::string_view kOff = "expandable_segments:False";
    std::string value;
    for (const char* name : {"PYTORCH_ALLOC_CONF", kVariable}) {  // torch 2.9 has both
        if (const auto found = process.environment.find(name); found != process.environment.end()) {
            value = found->second;
        }
    }
    if (value.find(kOn) != std::string::npos ||
        value.find("cudaMallocAsync") != std::string::npos) {
        return std::nullopt;
    }
    if (const auto off = value.find(kOff); off != std::string::npos) {
        value.replace(off, kOff.size(), kOn);
    } else {
        value += (value.empty() ? "" : ",") + std::string{kOn};
    }
    return Fix{say("let PyTorch's segments grow instead of taking new ones"),
               fmt::format("export {}={}", kVariable, shell_quoted(value)), false};
}

std::optional<Cause> in_pieces(const Memory& memory, const RunningCase& c) {
    if (!memory.asked || !memory.unallocated || *memory.unallocated <= *memory.asked) {
        return std::nullopt;
    }
    Cause cause{
        .title = say("{} did not fit, though PyTorch holds {} that is not in use: it is in "
                     "pieces",
                     bytes_text(*memory.asked), bytes_text(*memory.unallocated)),
        .fixes = {},
        .limits =
            say("how large the pieces are is not told, and what CUDA graphs keep for themselves "
                "is of no use to others")};
    if (auto fix = growing_segments(c.process)) {
        cause.fixes.push_back(std::move(*fix));
    } else {
        cause.limits += say("; the allocator's settings leave no growing segments to turn on");
    }
    return cause;
}

std::optional<Cause> held_elsewhere(const Memory& memory, const RunningCase& /*c*/) {
    const std::uint64_t others = held_by_others(memory);
    if (memory.one_may_be_this || !memory.asked || others == 0 ||
        others + memory.free.value_or(0) < *memory.asked) {
        return std::nullopt;
    }
    return Cause{.title = say("{} did not fit: other processes hold {} of this GPU{}",
                              bytes_text(*memory.asked), bytes_text(others),
                              memory.free ? say(", and {}", free_text(memory)) : std::string{}),
                 .fixes = {{say("see what they are; end what is left over, or use another GPU"),
                            kWhoHoldsIt, false}},
                 .limits = say("whether they are to be there is not known")};
}

std::optional<Cause> though_free(const Memory& memory, const RunningCase& /*c*/) {
    if (!memory.asked || !memory.free || *memory.free < *memory.asked) {
        return std::nullopt;
    }
    return Cause{
        .title =
            say("the driver refused {}, though {}", bytes_text(*memory.asked), free_text(memory)),
        .fixes = {},
        .limits = say("why is not seen: memory in pieces, a limit on this process (MPS), or "
                      "memory that was given back just after the failure")};
}

// The one that holds most of it is the one that can ask for less.
std::vector<Fix> to_ask_for_less(const Memory& memory) {
    const std::uint64_t own = memory.used_here ? *memory.used_here : memory.allocated.value_or(0);
    const std::string less =
        say("ask for less at a time: a smaller batch or sequence, gradient checkpointing, lower "
            "precision");
    if (memory.total && own > *memory.total / 2) {
        return {{less, "", false}};
    }
    return {{say("see which processes hold it"), kWhoHoldsIt, false},
            {say("if it is this program alone, {}", less), "", false}};
}

std::optional<Cause> used_up(const Memory& memory, const RunningCase& /*c*/) {
    if (!memory.asked) {
        return std::nullopt;
    }
    std::string title = say("{} of the GPU's memory were asked for", bytes_text(*memory.asked));
    if (memory.free) {
        title += say(", and {}", free_text(memory));
    }
    if (memory.used_here) {
        title += say("; this process itself holds {}", bytes_text(*memory.used_here));
    } else if (memory.allocated) {
        title += say("; this program itself has {} in use", bytes_text(*memory.allocated));
    }
    return Cause{.title = std::move(title),
                 .fixes = memory.free ? to_ask_for_less(memory) : std::vector<Fix>{},
                 .limits = memory.free
                               ? say("which allocations make up what is in use is not recorded")
                               : say("how much was free is not known")};
}

// From the particular to the general.
constexpr CauseOf kCauses[] = {larger_than_the_gpu, own_limit,   in_pieces,
                               held_elsewhere,      though_free, used_up};

Cause cause_of(const Memory& memory, const RunningCase& c) {
    for (const CauseOf cause : kCauses) {
        if (auto found = cause(memory, c)) {
            return std::move(*found);
        }
    }
    const std::string call = c.failed != nullptr ? c.failed->name : c.told.call;
    return {.title = say("the GPU's memory did not suffice for {}{}",
                         call.empty() ? say("a call that was not seen") : call,
                         memory.free ? say(": {}", free_text(memory)) : std::string{}),
            .fixes = {},
            .limits = say("how much was asked for is not known")};
}

void add_memory(const Memory& memory, const RunningCase& c, nlohmann::ordered_json& evidence) {
    const auto add = [&](const char* key, const Bytes& amount) {
        if (amount) {
            evidence[key] = *amount;
        } else {
            evidence[key] = say("not known");
        }
    };
    const auto add_known = [&](const char* key, const Bytes& amount) {
        if (amount) {
            evidence[key] = *amount;
        }
    };
    add("asked_bytes", memory.asked);
    add("free_bytes", memory.free);
    add("total_bytes", memory.total);
    add_known("this_process_bytes", memory.used_here);
    add_known("allocated_bytes", memory.allocated);
    add_known("reserved_unallocated_bytes", memory.unallocated);
    add_known("limit_bytes", memory.limit);
    if (const std::uint64_t others = held_by_others(memory);
        others != 0 && !memory.one_may_be_this) {
        evidence["other_processes_bytes"] = others;
    }
    if (!memory.others.empty()) {
        auto processes = nlohmann::ordered_json::array();
        for (const OtherProcess& other : memory.others) {
            processes.push_back(
                {{"pid", other.pid}, {"bytes", other.bytes}, {"is", bytes_text(other.bytes)}});
        }
        evidence["processes_on_gpu"] = std::move(processes);
    }
    const auto setting = c.process.environment.find("PYTORCH_CUDA_ALLOC_CONF");
    if (setting != c.process.environment.end()) {
        evidence["pytorch_cuda_alloc_conf"] = setting->second;
    }
}

}  // namespace

std::optional<Finding> cuda_out_of_memory(const RunningCase& c) {
    // What XLA and CuPy write does not name CUDA: without a driver it was another device's memory.
    if (c.sticky || c.told.code != kOutOfMemory ||
        (c.failed == nullptr && !c.process.cuda_driver)) {
        return std::nullopt;
    }
    const Memory memory = memory_of(c);
    const Cause cause = cause_of(memory, c);
    Finding finding = begin_finding(c, "cuda-out-of-memory", cause.title);
    add_memory(memory, c, finding.evidence);
    add_gpu(c.failed != nullptr ? c.failed->device : std::nullopt, finding.evidence);
    finding.fixes = cause.fixes;
    const auto limit = [&](const std::string& text) {
        finding.limits += (finding.limits.empty() || text.empty() ? "" : "; ") + text;
    };
    limit(cause.limits);
    if (memory.one_may_be_this) {
        limit(say("the processes are numbered as on the host: one of them may be this one"));
    }
    return finding;
}

}  // namespace cudiag
