// The rules of a profile: each takes a case and gives perhaps a finding. A rule's file bears its
// slug's name. What each may not conclude is in its finding's `limits` and in explain/SLUG.md.
#pragma once

#include <optional>
#include <vector>

#include "diagnose/facts.h"
#include "diagnose/machine.h"
#include "diagnose/optimizer/profile.h"

namespace cudiag {

struct ProfileCase {
    const Profile& profile;
    const RecordedProfile& recorded;
    const Facts& facts;
    const Process& process;
    const Machine& machine;
};

// One note for each optimizer: where its time goes. One without, if no step was seen.
std::vector<Finding> optimizer_profile(const ProfileCase& c);

std::optional<Finding> optimizer_not_fused(const ProfileCase& c, const Optimizer& optimizer);
std::optional<Finding> optimizer_cpu_bound(const ProfileCase& c, const Optimizer& optimizer);
std::optional<Finding> optimizer_launch_bound(const ProfileCase& c, const Optimizer& optimizer);
std::optional<Finding> optimizer_jit_first_step(const ProfileCase& c, const Optimizer& optimizer);

// CUPTI gave no records, or not all: another client has it, or this user may not use it.
std::optional<Finding> profile_seat_taken(const ProfileCase& c);
std::optional<Finding> profile_not_permitted(const ProfileCase& c);

// All of them, of all profiles of a run.
std::vector<Finding> judge_profiles(const Facts& facts, const Machine& machine);

}  // namespace cudiag
