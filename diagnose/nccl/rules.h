// The rules about NCCL: each takes a case and gives perhaps a finding. A rule's file bears its
// slug's name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/nccl/case.h"

namespace cudiag {

// NCCL_SOCKET_IFNAME as NCCL reads it: "^" in front excludes, "=" after that asks for whole names,
// else for beginnings; a ":PORT" after a name counts as well as nothing.
struct InterfaceChoice {
    bool excludes = false;
    bool exact = false;
    std::vector<std::string> names;
};

InterfaceChoice interface_choice(const std::string& value);
bool chosen(const InterfaceChoice& choice, const std::string& interface);

// The machine's interfaces (name, addresses, up, loopback, chosen) and NCCL_SOCKET_IFNAME.
void add_interfaces(const NcclCase& c, nlohmann::ordered_json& evidence);

std::optional<Finding> nccl_duplicate_gpu(const NcclCase& c);
std::optional<Finding> nccl_no_interface(const NcclCase& c);
std::optional<Finding> nccl_shm_too_small(const NcclCase& c);
std::optional<Finding> nccl_hang(const NcclCase& c);
std::optional<Finding> nccl_version_mix(const NcclCase& c);
std::optional<Finding> nccl_remote_error(const NcclCase& c);
std::optional<Finding> nccl_cuda_error(const NcclCase& c);
std::optional<Finding> nccl_system_error(const NcclCase& c);

// The first of them that speaks. Where the rule of a cause has reasons to be silent, the case is
// told by its result alone.
std::optional<Finding> nccl_failed(const NcclCase& c);

// An NCCL in the process that is not the one which its torch asks for. Nothing shows that the
// process failed of it.
std::optional<Finding> nccl_other_than_torchs(const Process& process);

}  // namespace cudiag
