// `cudiag report --html F`, `--perfetto F`, `--tensorboard DIR`: a run's profile as files.
#pragma once

#include <string>
#include <vector>

#include "diagnose/optimizer/profile.h"

namespace cudiag {

// Where each is wanted; "" where it is not.
struct ProfileFiles {
    std::string html;
    std::string perfetto;
    std::string tensorboard;  // a directory, made if it is not there

    bool wanted() const { return !html.empty() || !perfetto.empty() || !tensorboard.empty(); }
};

// Writes those that are wanted and says so on stderr. The exit status: kCouldNotRun, with one line
// why, if there is no profile or a file cannot be written.
int write_profile_files(const std::vector<Profile>& profiles, const ProfileFiles& files,
                        const std::string& run);

}  // namespace cudiag
