#include "diagnose/nccl/rules.h"

#include "diagnose/say.h"

namespace cudiag {

std::optional<Finding> nccl_duplicate_gpu(const NcclCase& c) {
    if (c.cause->slug != "nccl-duplicate-gpu") {
        return std::nullopt;
    }
    Finding finding = begin_finding(c);
    finding.evidence["ranks"] = {c.value("a"), c.value("b")};
    finding.evidence["bus_id"] = c.value("device");
    finding.evidence["pci"] = words_of(c).at("pci");
    if (const std::size_t gpus = visible_gpus(c); gpus > 0) {
        finding.evidence["gpus"] = gpus;
    } else {
        finding.evidence["gpus"] = say("not known");
    }
    const std::string processes = c.variable("LOCAL_WORLD_SIZE");
    finding.evidence["processes"] = processes.empty() ? say("not known") : processes;
    finding.evidence["processes_here"] = ranks_json(c);
    if (!c.machine.mig_instances.empty()) {
        finding.limits += say(
            ". This GPU is divided (MIG): instances of one GPU are one GPU to NCCL, and no choice "
            "of devices helps");
        finding.fixes.clear();
        finding.evidence["mig_instances"] = c.machine.mig_instances;
    }
    return finding;
}

}  // namespace cudiag
