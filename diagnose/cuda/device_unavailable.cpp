#include <algorithm>
#include <cstring>

#include "diagnose/cuda/rules.h"
#include "diagnose/cuda/state.h"
#include "diagnose/knowledge/cuda.h"
#include "diagnose/packages/owner.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

void add_machine(const CudaCase& c, nlohmann::ordered_json& evidence) {
    const Machine& machine = c.machine;
    const auto visible = c.process.environment.find("CUDA_VISIBLE_DEVICES");
    evidence["cuda_visible_devices"] =
        visible == c.process.environment.end() ? say("not set") : "\"" + visible->second + "\"";
    evidence["device_nodes"] = machine.device_nodes;
    if (!machine.refused_nodes.empty()) {
        auto refused = nlohmann::ordered_json::array();
        for (const RefusedNode& node : machine.refused_nodes) {
            refused.push_back(node.path + ": " + std::strerror(node.error));
        }
        evidence["refused_nodes"] = std::move(refused);
    }
    evidence["fabric_manager"] = machine.fabric_manager ? "runs" : say("not seen");
    evidence["mig_instances"] = machine.mig_instances;
    evidence["container"] = machine.container.empty() ? say("none seen") : machine.container;
    evidence["kernel"] = machine.kernel;
    if (!machine.uvm_hmm_disabled.empty()) {
        evidence["uvm_disable_hmm"] = machine.uvm_hmm_disabled;
    }
}

// When the library became another than the module that runs: what started before that goes on.
void add_update(const CudaCase& c, nlohmann::ordered_json& evidence) {
    const auto package = owner_of(c.driver.path);
    if (!package) {
        return;
    }
    evidence["driver_package"] = package->name + " " + package->version;
    if (const auto change = last_change(*package)) {
        evidence["driver_package_since"] = change->time;
        if (!change->before.empty()) {
            evidence["driver_package_before"] = change->before;
        }
    }
}

}  // namespace

std::optional<Finding> cuda_device_unavailable(const CudaCase& c) {
    const UnavailableCode* known = unavailable_code(c.code);
    if (known == nullptr || std::find(known->not_calls.begin(), known->not_calls.end(), c.call) !=
                                known->not_calls.end()) {
        return std::nullopt;
    }
    const auto states = states_of(c);
    const auto words = words_of(c);
    Finding finding = begin_finding(c, "cuda-device-unavailable", say_filled(known->title, words));
    finding.evidence["call"] = c.call.empty() ? say("not seen") : c.call;
    add_machine(c, finding.evidence);
    add_driver(c, finding.evidence);
    if (states.at("mismatch")) {
        add_update(c, finding.evidence);
    }
    add_runtime(c, finding.evidence);
    for (const UnavailableRemedy& remedy : known->remedies) {
        if (hold(states, remedy.when)) {
            finding.fixes.push_back(
                {say_filled(remedy.text, words), filled(remedy.command, words), false});
        }
    }
    if (known->likely) {
        finding.confidence = Confidence::likely;
    }
    finding.limits += (finding.limits.empty() ? "" : "; ") + say_known(known->limits);
    return finding;
}

}  // namespace cudiag
