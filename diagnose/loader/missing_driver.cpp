#include <algorithm>

#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/driver_library.h"
#include "diagnose/loader/rules.h"
#include "diagnose/say.h"

namespace cudiag {

std::optional<Finding> loader_missing_driver(const LoaderCase& c) {
    const bool absent = c.error.form == ErrorForm::missing_file;
    const LibraryRelease* release = library_release(file_name(c.error.subject));
    const bool unversioned = file_name(c.error.subject) == "libcuda.so" ||
                             file_name(c.error.subject) == "libnvidia-ml.so";
    if (!absent || ((release == nullptr || !release->driver) && !unversioned)) {
        return std::nullopt;
    }
    const Machine& machine = c.machine;
    const std::string place = machine.container.empty()
                                  ? say("on this machine")
                                  : say("in this {} container", machine.container);
    Finding finding = begin_finding(
        c, "loader-missing-driver",
        say("the NVIDIA driver's library {} is not {}{}", c.error.subject, place,
            machine.device_nodes.empty() ? say(", and there is no /dev/nvidia* either") : ""));
    const Lookup* missing = c.resolution.first_missing();
    finding.evidence["library"] = c.error.subject;
    finding.evidence["searched"] =
        searched_json(missing != nullptr ? missing->steps : std::vector<SearchStep>{});
    finding.evidence["device_nodes"] = machine.device_nodes;
    finding.evidence["driver_module"] = machine.driver_module.empty()
                                            ? say("none loaded (no /proc/driver/nvidia)")
                                            : machine.driver_module;
    finding.evidence["container"] =
        machine.container.empty() ? say("none seen") : machine.container;
    finding.evidence["near_misses"] =
        copies_json(find_copies(unversioned ? c.error.subject + ".1" : c.error.subject, c.process,
                                c.modules, c.state.config));
    finding.fixes = fixes_for_missing_driver(c.machine);
    finding.limits = say(
        "seen from inside this process only: what the host or the container runtime would give is "
        "not visible here. "
        "The driver comes with the kernel module; pip, conda and the CUDA toolkit do not bring it "
        "(the toolkit's "
        "stubs/libcuda.so is for linking alone).");
    return finding;
}

}  // namespace cudiag
