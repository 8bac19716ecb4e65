#include <algorithm>

#include "diagnose/optimizer/words.h"
#include "diagnose/say.h"

namespace cudiag {

std::optional<Finding> profile_not_permitted(const ProfileCase& c) {
    constexpr std::uint64_t kInsufficient = 35;         // CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
    constexpr std::uint64_t kInsufficientVirtual = 40;  // …_VIRTUALIZED_DEVICE_INSUFFICIENT_…
    const auto& lacks = c.recorded.lacks;
    const auto refused = std::find_if(lacks.begin(), lacks.end(), [](const RecordedLack& lack) {
        return lack.error == kInsufficient || lack.error == kInsufficientVirtual;
    });
    if (refused == lacks.end()) {
        return std::nullopt;
    }
    Finding finding = finding_of(c, "profile-not-permitted", Severity::warning);
    finding.title = say("this user may not profile this GPU: {} was refused", refused->call);
    finding.evidence = {{"call", refused->call},
                        {"error", refused->text},
                        {"profiling_admin_only", c.machine.profiling_admin_only},
                        {"uid", c.machine.uid},
                        {"effective_capabilities", c.machine.effective_capabilities},
                        {"container", c.machine.container}};
    if (c.machine.profiling_admin_only == "1") {
        finding.fixes.push_back(
            {.text = say("the administrator can let every user profile: "
                         "NVreg_RestrictProfilingToAdminUsers=0 "
                         "for the module nvidia, and a reboot"),
             .command = "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee "
                        "/etc/modprobe.d/nvidia-profiling.conf"});
        if (!c.machine.container.empty()) {
            finding.fixes.push_back(
                {.text =
                     say("or give the container the capability: to be root in it is not enough"),
                 .command = "docker run --cap-add=SYS_ADMIN ..."});
        }
    }
    finding.limits =
        say("uid and capabilities are those of whoever asks now, who started the program mostly");
    return finding;
}

}  // namespace cudiag
