#include "diagnose/optimizer/analyse.h"
#include "diagnose/optimizer/rules.h"

namespace cudiag {

std::vector<Finding> judge_profiles(const Facts& facts, const Machine& machine) {
    std::vector<Finding> findings;
    for (const RecordedProfile& recorded : facts.profiles) {
        const Profile profile = analyse(recorded, machine.card_directories);
        const Process process = process_of(facts, recorded.pid);
        const ProfileCase c{profile, recorded, facts, process, machine};
        for (Finding& note : optimizer_profile(c)) {
            findings.push_back(std::move(note));
        }
        for (const auto rule : {profile_seat_taken, profile_not_permitted}) {
            if (auto finding = rule(c)) {
                findings.push_back(std::move(*finding));
            }
        }
        for (const Optimizer& optimizer : profile.optimizers) {
            for (const auto rule : {optimizer_not_fused, optimizer_cpu_bound,
                                    optimizer_launch_bound, optimizer_jit_first_step}) {
                if (auto finding = rule(c, optimizer)) {
                    findings.push_back(std::move(*finding));
                }
            }
        }
    }
    return findings;
}

}  // namespace cudiag
