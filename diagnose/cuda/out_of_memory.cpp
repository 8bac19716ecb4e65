#include <fmt/core.h>

#include <algorithm>

#include "diagnose/cuda/gpu.h"
#include "diagnose/cuda/running_rules.h"
#include "diagnose/knowledge/memory_texts.h"
#include "diagnose/units.h"

namespace cudiag {
namespace {

constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY (cuda.h)

// Figures by name, the program's own before the driver's: an allocator of the program may have
// asked the driver for something else.
using Figures = std::map<std::string, std::uint64_t, std::less<>>;

Figures figures_of(const RunningCase& c) {
    Figures figures;
    for (const PythonException& exception : c.process.exceptions) {
        figures.merge(memory_told_by(exception.message));
    }
    const auto add = [&](const char* name, const std::optional<std::uint64_t>& value) {
        if (value) {
            figures.emplace(name, *value);
        }
    };
    if (c.failed != nullptr) {
        add("asked", c.failed->bytes_asked);
        add("free", c.failed->bytes_free);
        add("total", c.failed->bytes_total);
    }
    return figures;
}

class Memory {
  public:
    explicit Memory(Figures figures) : figures_{std::move(figures)} {}

    std::optional<std::uint64_t> of(std::string_view name) const {
        const auto found = figures_.find(name);
        return found == figures_.end() ? std::nullopt : std::optional{found->second};
    }

    bool any() const { return !figures_.empty(); }

    // More than there is, whoever else is on the GPU.
    bool never_fits() const { return of("asked") && of("total") && *of("asked") > *of("total"); }

    // The program's allocator holds enough that is not in use, but not in one piece.
    bool fragmented() const {
        const auto reserved = of("reserved");
        return of("asked") && reserved && *reserved >= *of("asked");
    }

    // What is neither free nor this process's: other processes', as far as the text tells.
    std::optional<std::uint64_t> others() const {
        if (of("other")) {
            return of("other");
        }
        const auto total = of("total");
        const auto free = of("free");
        const auto own = of("in_use");
        return total && free && own && *total >= *free + *own ? std::optional{*total - *free - *own}
                                                              : std::nullopt;
    }

    bool others_matter() const {
        const auto taken = others();
        const auto total = of("total");
        constexpr std::uint64_t kShare = 10;  // of the GPU's memory, a tenth
        return taken && total && *taken > *total / kShare;
    }

    // The driver refused what would have fitted.
    bool should_fit() const {
        return of("asked") && of("free") && *of("free") > *of("asked") && !never_fits();
    }

  private:
    Figures figures_;
};

std::string title_of(const Memory& memory, const std::string& gpu) {
    const auto asked = memory.of("asked");
    const auto free = memory.of("free");
    const auto total = memory.of("total");
    if (!asked) {
        return fmt::format("the memory of {} did not suffice", gpu);
    }
    if (memory.never_fits()) {
        return fmt::format("{} of GPU memory were asked for at once, and {} has {} in all",
                           bytes_text(*asked), gpu, bytes_text(*total));
    }
    if (memory.fragmented()) {
        return fmt::format(
            "{} of GPU memory were asked for: the program's allocator holds {} that is not in use, "
            "but not in one piece",
            bytes_text(*asked), bytes_text(memory.of("reserved").value_or(0)));
    }
    return fmt::format("{} of GPU memory were asked for{}{}", bytes_text(*asked),
                       free ? fmt::format(", and {} were free", bytes_text(*free)) : "",
                       total ? fmt::format(" of {}", bytes_text(*total)) : "");
}

bool is_torch(const RunningCase& c) {
    return c.told.error.find("CUDA out of memory. Tried to allocate") != std::string::npos;
}

void add_fixes(const RunningCase& c, const Memory& memory, Finding& finding) {
    const auto fix = [&](const char* text, const char* command) {
        finding.fixes.push_back({text, command, false});
    };
    if (memory.never_fits()) {
        fix("no GPU of this kind can hold it: a size or a shape is wrong, or the work must be "
            "split over several",
            "");
        return;
    }
    if (memory.others_matter()) {
        fix("other processes hold memory of this GPU: see which, and end those that are yours",
            "nvidia-smi --query-compute-apps=pid,used_memory,name --format=csv");
    }
    if (memory.fragmented() && is_torch(c)) {
        fix("let torch's allocator grow its segments, so that freed memory joins",
            "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    }
    if (!memory.should_fit() && !memory.fragmented()) {
        fix("ask for less at a time: a smaller batch or sequence, gradient checkpointing, lower "
            "precision",
            "");
    }
}

}  // namespace

std::optional<Finding> cuda_out_of_memory(const RunningCase& c) {
    if (c.told.code != kOutOfMemory) {
        return std::nullopt;
    }
    const Memory memory{figures_of(c)};
    const auto device = c.failed != nullptr ? c.failed->device : std::optional<CudaDevice>{};
    Finding finding = begin_finding(c, "cuda-out-of-memory", title_of(memory, gpu_text(device)));
    add_gpu(device, finding.evidence);
    const auto add = [&](const char* key, const std::optional<std::uint64_t>& value) {
        if (value) {
            finding.evidence[key] = *value;
        }
    };
    add("asked_bytes", memory.of("asked"));
    add("free_bytes", memory.of("free"));
    add("total_bytes", memory.of("total"));
    add("this_process_bytes", memory.of("in_use"));
    add("other_processes_bytes", memory.others());
    add("allocated_bytes", memory.of("allocated"));
    add("reserved_unallocated_bytes", memory.of("reserved"));
    const auto setting = c.process.environment.find("PYTORCH_CUDA_ALLOC_CONF");
    if (setting != c.process.environment.end()) {
        finding.evidence["pytorch_cuda_alloc_conf"] = setting->second;
    }
    add_fixes(c, memory, finding);
    if (memory.should_fit() && !memory.fragmented()) {
        finding.limits += (finding.limits.empty() ? "" : "; ") +
                          std::string{
                              "what was free after the failure would have sufficed: it was freed "
                              "since, is not in one piece, or another limit holds"};
    }
    return finding;
}

}  // namespace cudiag
