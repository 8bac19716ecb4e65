#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/nccl/rules.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

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

void add_interfaces(const NcclCase& c, nlohmann::ordered_json& evidence) {
    const auto set = c.process.environment.find("NCCL_SOCKET_IFNAME");
    const std::string value = set == c.process.environment.end() ? std::string{} : set->second;
    const InterfaceChoice choice = interface_choice(value);
    auto present = nlohmann::ordered_json::array();
    for (const Interface& interface : c.machine.interfaces) {
        present.push_back({{"name", interface.name},
                           {"addresses", interface.addresses},
                           {"up", interface.up},
                           {"loopback", interface.loopback},
                           {"chosen", chosen(choice, interface.name)}});
    }
    evidence["nccl_socket_ifname"] =
        set == c.process.environment.end() ? say("not set") : "\"" + value + "\"";
    evidence["interfaces"] = std::move(present);
}

std::optional<Finding> nccl_no_interface(const NcclCase& c) {
    if (c.cause->slug != "nccl-no-interface") {
        return std::nullopt;
    }
    const std::string value = c.variable("NCCL_SOCKET_IFNAME");
    const InterfaceChoice choice = interface_choice(value);
    auto would_do = nlohmann::ordered_json::array();
    bool any_chosen = false;
    for (const Interface& interface : c.machine.interfaces) {
        any_chosen = any_chosen || (chosen(choice, interface.name) && interface.up &&
                                    !interface.addresses.empty());
        if (leads_out(interface)) {
            would_do.push_back(interface.name);
        }
    }
    Finding finding = begin_finding(c);
    finding.limits = c.inferred.empty() ? "" : say("that the process ended of this is inferred; ");
    const bool by_variable = !value.empty() && !any_chosen;
    if (by_variable) {
        finding.title =
            say("NCCL_SOCKET_IFNAME=\"{}\" fits no network interface of this machine", value);
        finding.fixes.push_back(
            {say("let NCCL choose by itself"), "unset NCCL_SOCKET_IFNAME", false});
        if (!would_do.empty()) {
            finding.fixes.push_back(
                {say("or name one that is here (the same kind of name must do on every host)"),
                 fmt::format("export NCCL_SOCKET_IFNAME={}", would_do.front().get<std::string>()),
                 false});
        }
    } else {
        finding.confidence = Confidence::likely;
        finding.limits += say("why none of the interfaces did is not known; ");
    }
    add_interfaces(c, finding.evidence);
    const std::string names = say_list(choice.names, say(" or "));
    finding.evidence["read_as"] =
        value.empty()                     ? say("any interface")
        : choice.excludes && choice.exact ? say("no interfaces whose name is {}", names)
        : choice.excludes                 ? say("no interfaces whose name begins with {}", names)
        : choice.exact                    ? say("only interfaces whose name is {}", names)
                                          : say("only interfaces whose name begins with {}", names);
    finding.evidence["would_do"] = std::move(would_do);
    finding.limits += say(
        "the variable is as it was when the process started, the interfaces as they are now; by "
        "which of them the other hosts can be reached is not tried");
    return finding;
}

}  // namespace cudiag
