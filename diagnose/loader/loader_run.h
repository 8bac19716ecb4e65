// Runs the dynamic loader (or any program) with an environment of our choosing, and gives back what
// it said.
#pragma once

#include <string>
#include <vector>

namespace cudiag {

struct LoaderRun {
    bool started = false;
    bool timed_out = false;
    int status = 0;        // as wait(2) gives it
    int error_number = 0;  // when it was not started
    std::string out, err;  // at most 16 MB each
};

// Blocks for at most `seconds`; a program that takes longer is killed. `environment` is the whole
// environment ("A=b"). Standard input is /dev/null. Not to be called while another thread changes
// the working directory or SIGCHLD.
LoaderRun run_loader(const std::vector<std::string>& command,
                     const std::vector<std::string>& environment, const std::string& cwd,
                     int seconds);

}  // namespace cudiag
