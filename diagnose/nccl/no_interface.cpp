#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/knowledge/cuda.h"
#include "diagnose/nccl/rules.h"

namespace cudiag {
namespace {

const PythonException* exception_saying(const Process& process, std::string& line) {
    for (const PythonException& exception : process.exceptions) {
        for (const CudaText& text : cuda_texts_of(exception.message)) {
            const auto subject = text.values.find("subject");
            if (subject != text.values.end() && subject->second == "nccl-no-interface") {
                line = text.line;
                return &exception;
            }
        }
    }
    return nullptr;
}

// An interface by which other hosts can be met, as far as its flags and its name tell: bridges of
// container runtimes lead nowhere.
bool leads_out(const Interface& interface) {
    constexpr const char* kInner[] = {"docker", "br-", "veth", "virbr", "cni", "podman"};
    return interface.up && !interface.loopback && !interface.addresses.empty() &&
           std::none_of(std::begin(kInner), std::end(kInner),
                        [&](const char* prefix) { return interface.name.rfind(prefix, 0) == 0; });
}

}  // namespace

InterfaceChoice interface_choice(const std::string& value) {
    InterfaceChoice choice;
    std::size_t at = 0;
    if (at < value.size() && value[at] == '^') {
        choice.excludes = true;
        ++at;
    }
    if (at < value.size() && value[at] == '=') {
        choice.exact = true;
        ++at;
    }
    while (at < value.size()) {
        const std::size_t end = std::min(value.find(',', at), value.size());
        const std::string entry = value.substr(at, end - at);
        const std::string name = entry.substr(0, entry.find(':'));
        if (!name.empty()) {
            choice.names.push_back(name);
        }
        at = end + 1;
    }
    return choice;
}

bool chosen(const InterfaceChoice& choice, const std::string& interface) {
    const bool named =
        std::any_of(choice.names.begin(), choice.names.end(), [&](const std::string& name) {
            return choice.exact ? interface == name : interface.rfind(name, 0) == 0;
        });
    return choice.names.empty() || named != choice.excludes;
}

std::optional<Finding> nccl_no_interface(const Process& process, const Machine& machine) {
    std::string line;
    const PythonException* exception = process.failed() ? exception_saying(process, line) : nullptr;
    if (exception == nullptr) {
        return std::nullopt;
    }
    const auto set = process.environment.find("NCCL_SOCKET_IFNAME");
    const std::string value = set == process.environment.end() ? std::string{} : set->second;
    const InterfaceChoice choice = interface_choice(value);
    auto present = nlohmann::ordered_json::array();
    auto would_do = nlohmann::ordered_json::array();
    bool any_chosen = false;
    for (const Interface& interface : machine.interfaces) {
        const bool fits = chosen(choice, interface.name);
        any_chosen = any_chosen || (fits && interface.up && !interface.addresses.empty());
        present.push_back({{"name", interface.name},
                           {"addresses", interface.addresses},
                           {"up", interface.up},
                           {"loopback", interface.loopback},
                           {"chosen", fits}});
        if (leads_out(interface)) {
            would_do.push_back(interface.name);
        }
    }
    Finding finding;
    finding.slug = "nccl-no-interface";
    finding.pid = process.pid;
    finding.argv = process.argv;
    finding.time_ns = exception->time_ns;
    finding.python = exception->python;
    const bool by_variable = !value.empty() && !any_chosen;
    finding.title =
        by_variable
            ? fmt::format("NCCL_SOCKET_IFNAME=\"{}\" fits no network interface of this machine",
                          value)
            : std::string{"NCCL found no network interface that it could use"};
    finding.evidence["error"] = exception->type + ": " + line;
    finding.evidence["nccl_socket_ifname"] =
        set == process.environment.end() ? "not set" : "\"" + value + "\"";
    finding.evidence["read_as"] =
        value.empty()
            ? "any interface"
            : fmt::format("{} interfaces whose name {} {}", choice.excludes ? "no" : "only",
                          choice.exact ? "is" : "begins with", fmt::join(choice.names, " or "));
    finding.evidence["interfaces"] = std::move(present);
    if (by_variable) {
        finding.fixes.push_back({"let NCCL choose by itself", "unset NCCL_SOCKET_IFNAME", false});
        if (!would_do.empty()) {
            finding.fixes.push_back(
                {"or name one that is here (the same kind of name must do on every host)",
                 fmt::format("export NCCL_SOCKET_IFNAME={}", would_do.front().get<std::string>()),
                 false});
        }
    } else {
        finding.confidence = Confidence::likely;
        finding.limits = "why none of the interfaces did is not known; ";
    }
    finding.evidence["would_do"] = std::move(would_do);
    finding.limits +=
        "the variable is as it was when the process started, the interfaces as they are now; by "
        "which of them the other hosts can be reached is not tried";
    return finding;
}

}  // namespace cudiag
