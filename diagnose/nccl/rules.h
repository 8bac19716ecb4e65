// The rules about NCCL. A rule's file bears its slug's name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/facts.h"
#include "diagnose/machine.h"

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

// NCCL found no network interface to meet the other ranks by.
std::optional<Finding> nccl_no_interface(const Process& process, const Machine& machine);

}  // namespace cudiag
