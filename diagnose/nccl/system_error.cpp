#include "diagnose/nccl/rules.h"

namespace cudiag {

// NCCL's words are told, and what is known to follow from them. Where they settle no cause there is
// no fix.
std::optional<Finding> nccl_system_error(const NcclCase& c) {
    if (c.cause->slug != "nccl-system-error") {
        return std::nullopt;
    }
    Finding finding = begin_finding(c);
    add_interfaces(c, finding.evidence);
    const auto text = [](std::uint64_t limit) {
        return limit == UINT64_MAX ? nlohmann::ordered_json("unlimited")
                                   : nlohmann::ordered_json(limit);
    };
    finding.evidence["locked_memory_limit"] = text(c.machine.locked_memory.soft);
    finding.evidence["open_files_limit"] = text(c.machine.open_files.soft);
    finding.evidence["processes_here"] = ranks_json(c);
    return finding;
}

}  // namespace cudiag
