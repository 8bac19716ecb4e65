#include <algorithm>
#include <charconv>

#include "diagnose/nccl/rules.h"
#include "diagnose/say.h"
#include "diagnose/units.h"

namespace cudiag {
namespace {

// NCCL 2.21 does not say why it could not make the segment, 2.27 does. Then only what is there
// tells.
bool is_full_by_what_is_there(const SharedMemory& shm, std::uint64_t need) {
    constexpr std::uint64_t kShmOfContainers = 64ULL << 20U;
    return shm.known && (shm.free < need || shm.size <= kShmOfContainers);
}

}  // namespace

std::optional<Finding> nccl_shm_too_small(const NcclCase& c) {
    if (c.cause->slug != "nccl-shm-too-small") {
        return std::nullopt;
    }
    const SharedMemory& shm = c.machine.shared_memory;
    const std::string why = c.value("why");
    const std::string size = c.value("size");
    std::uint64_t need = 0;
    std::from_chars(size.data(), size.data() + size.size(), need);
    const bool told = why == "No space left on device";
    if (!told && (!why.empty() || !is_full_by_what_is_there(shm, need))) {
        return std::nullopt;
    }
    Finding finding = begin_finding(c);
    finding.title = say("/dev/shm is too small for NCCL: ");
    finding.title += need == 0 ? say("a segment did not fit")
                               : say("a segment of {} did not fit", bytes_text(need));
    if (shm.known) {
        finding.title +=
            say(" ({} in all, {} free now)", bytes_text(shm.size), bytes_text(shm.free));
    }
    if (!told) {
        finding.confidence = Confidence::likely;
        finding.limits =
            say("this NCCL does not say why it could not make the segment: that it did not fit is "
                "inferred from the size of /dev/shm; ") +
            finding.limits;
    }
    finding.evidence["segment"] = c.value("segment").empty() ? say("not told") : c.value("segment");
    finding.evidence["need_bytes"] = need;
    finding.evidence["size_bytes"] = shm.size;
    finding.evidence["used_bytes"] = shm.size - std::min(shm.size, shm.free);
    finding.evidence["free_bytes"] = shm.free;
    auto segments = nlohmann::ordered_json::array();
    for (const SharedSegment& segment : shm.nccl) {
        segments.push_back({{"name", segment.name},
                            {"bytes", segment.bytes},
                            {"mapped_by_a_process_here", segment.mapped}});
    }
    finding.evidence["segments"] = std::move(segments);
    finding.evidence["container"] =
        c.machine.container.empty() ? say("none seen") : c.machine.container;
    return finding;
}

}  // namespace cudiag
