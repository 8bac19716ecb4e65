// One process that NCCL let down: the words that it ended with, its call of NCCL where that was
// seen, and what is known of the other ranks that ran here. Rules take a case and give perhaps a
// finding.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/facts.h"
#include "diagnose/knowledge/nccl.h"
#include "diagnose/machine.h"

namespace cudiag {

struct NcclCase {
    const Facts& facts;
    const Process& process;
    const Machine& machine;
    std::string error;                 // the line that tells that NCCL failed
    std::string result;                // "ncclSystemError"; "" if no words tell it
    std::string last_error;            // NCCL's own last warning; "" if the program did not show it
    const NcclCause* cause = nullptr;  // as far as the words tell; nullptr if they are not known
    TextValues values;                 // of the words that tell the cause
    std::uint64_t time_ns = 0;
    std::vector<PythonFrame> python;
    std::string inferred;  // as CudaCase::inferred

    const NcclCall* call = nullptr;  // that failed; nullptr if none was seen

    std::string library;  // path of libnccl; "" if none is mapped (it may be linked in)
    std::string version;  // NCCL's, as the program or the file tells; "" if not known

    std::string value(const char* key) const;
    std::string variable(const std::string& name) const;  // at the start of the process
};

// Only of a process that failed, and only if its last words say that NCCL did, or for want of words
// its last call of NCCL before the end. A word about NCCL is not enough. `facts`, `process` and
// `machine` must outlive the case.
std::optional<NcclCase> nccl_case_of(const Facts& facts, const Process& process,
                                     const Machine& machine);

// Does the message tell that NCCL failed?
bool tells_of_nccl(const std::string& message);

// The number of a rank as the variable RANK gave it at the start; nothing if it is none.
std::optional<std::int64_t> rank_of(const Process& process);

// The processes of the run that are ranks of a job, have NCCL mapped or called it: pid, rank,
// local_rank, world_size, cuda_visible_devices, communicators (each that it asked for: call, rank,
// ranks, device, result), ended ("" while it runs).
nlohmann::ordered_json ranks_json(const NcclCase& c);

// Names of states for remedies, and of words to fill in; of knowledge/nccl_texts.json.
std::map<std::string, bool> states_of(const NcclCase& c);
std::map<std::string, std::string> words_of(const NcclCase& c);

// GPUs that the process may see: the entries of CUDA_VISIBLE_DEVICES, else the nodes /dev/nvidiaN;
// 0 if not known.
std::size_t visible_gpus(const NcclCase& c);

// A finding as the case's cause has it: title, remedies, limits, and the evidence that all findings
// of NCCL share: error, result, last_error, meaning, nccl, nccl_version, rank; and of a call that
// was seen: call, called_by, call_rank, call_ranks, device.
Finding begin_finding(const NcclCase& c);

}  // namespace cudiag
