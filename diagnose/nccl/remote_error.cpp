#include "diagnose/nccl/rules.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// The rank of this run that ended first, before this one lost a connection: the one to look at.
const Process* ended_before(const NcclCase& c) {
    const Process* first = nullptr;
    for (const Process& process : c.facts.processes) {
        if (process.pid != c.process.pid && rank_of(process) && process.failed() &&
            process.end_time_ns != 0 && process.end_time_ns <= c.time_ns &&
            (first == nullptr || process.end_time_ns < first->end_time_ns)) {
            first = &process;
        }
    }
    return first;
}

}  // namespace

std::optional<Finding> nccl_remote_error(const NcclCase& c) {
    if (c.cause->slug != "nccl-remote-error") {
        return std::nullopt;
    }
    Finding finding = begin_finding(c);
    if (const Process* first = ended_before(c)) {
        finding.title +=
            say("; rank {} (process {}) had failed before", *rank_of(*first), first->pid);
        finding.evidence["failed_before"] = first->pid;
    }
    finding.evidence["processes_here"] = ranks_json(c);
    add_interfaces(c, finding.evidence);
    return finding;
}

}  // namespace cudiag
