#include "diagnose/cuda/state.h"

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "diagnose/say.h"

namespace cudiag {
namespace {

bool has_node(const Machine& machine, const std::string& node) {
    return std::find(machine.device_nodes.begin(), machine.device_nodes.end(), node) !=
           machine.device_nodes.end();
}

// /dev/nvidia0, not /dev/nvidiactl.
bool is_gpu(const std::string& node) {
    constexpr const char* kPrefix = "/dev/nvidia";
    const std::size_t length = std::char_traits<char>::length(kPrefix);
    return node.rfind(kPrefix, 0) == 0 && node.size() > length &&
           std::all_of(node.begin() + static_cast<std::ptrdiff_t>(length), node.end(),
                       [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool all_gpus_refused(const Machine& machine) {
    const auto gpus =
        std::count_if(machine.device_nodes.begin(), machine.device_nodes.end(), is_gpu);
    const auto refused = std::count_if(
        machine.refused_nodes.begin(), machine.refused_nodes.end(),
        [](const RefusedNode& node) { return node.error == EPERM && is_gpu(node.path); });
    return gpus > 0 && refused == gpus;
}

// CUDA stops at the first entry that names no GPU: an empty value and -1 leave none.
bool hides_all(const CudaCase& c) {
    const auto found = c.process.environment.find("CUDA_VISIBLE_DEVICES");
    return found != c.process.environment.end() &&
           (found->second.empty() || found->second.rfind("-1", 0) == 0 ||
            found->second == "NoDevFiles");
}

bool mismatch(const CudaCase& c) {
    return !c.driver_release.empty() && !c.module_release.empty() &&
           c.driver_release != c.module_release;
}

}  // namespace

std::map<std::string, bool> states_of(const CudaCase& c) {
    const Machine& machine = c.machine;
    const bool uvm = has_node(machine, "/dev/nvidia-uvm");
    const bool nodes = !machine.device_nodes.empty();
    return {{"wsl", machine.wsl},
            {"container", !machine.container.empty()},
            {"docker", machine.container == "docker"},
            {"podman", machine.container == "podman"},
            {"apptainer", machine.container == "apptainer"},
            {"kubernetes", machine.container == "kubernetes"},
            {"no_device_nodes", !nodes},
            {"gpus_refused", all_gpus_refused(machine)},
            {"uvm_present", uvm},
            {"uvm_missing", !uvm && has_node(machine, "/dev/nvidiactl")},
            {"hmm_on", machine.uvm_hmm_disabled == "N"},
            {"fabric_manager", machine.fabric_manager},
            {"mig", !machine.mig_instances.empty()},
            {"ranks", !c.variable("LOCAL_RANK").empty()},
            {"visible_set", !c.variable("CUDA_VISIBLE_DEVICES").empty()},
            {"hidden_by_variable", hides_all(c)},
            {"compat", c.compat()},
            {"from_variable", c.from_variable()},
            {"mismatch", mismatch(c)}};
}

bool hold(const std::map<std::string, bool>& states, const std::vector<std::string>& names) {
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
        const bool negated = name.front() == '!';
        const auto state = states.find(negated ? name.substr(1) : name);
        return state != states.end() && state->second != negated;
    });
}

std::map<std::string, std::string> words_of(const CudaCase& c) {
    const auto known = [](const std::string& release) {
        return release.empty() ? say("not seen here") : release;
    };
    return {{"visible", c.variable("CUDA_VISIBLE_DEVICES")},
            {"library", c.driver.path},
            {"directory", c.directory()},
            {"library_path", c.from_variable() ? without_library_path(c, c.directory()) : ""},
            {"releases", say("library {}, kernel module {}", known(c.driver_release),
                             known(c.module_release))}};
}

std::string filled(std::string text, const std::map<std::string, std::string>& words) {
    for (const auto& [name, word] : words) {
        const std::string braced = "{" + name + "}";
        for (auto at = text.find(braced); at != std::string::npos;
             at = text.find(braced, at + word.size())) {
            text.replace(at, braced.size(), word);
        }
    }
    return text;
}

}  // namespace cudiag
