// Writes what each presenter makes of a profile made by hand into a directory, for the readers of
// these formats: profile.html, profile.pftrace, events.out.tfevents.…
#include <cstdio>
#include <fstream>
#include <string>

#include "present/perfetto.h"
#include "present/profile_html.h"
#include "present/tensorboard.h"
#include "tests/present/made_profile.h"

int main(int argc, char** argv) {
    if (argc != 2) {
        (void)std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 2;
    }
    const std::string directory = argv[1];
    const std::vector<cudiag::Profile> profiles{cudiag::testing::made_profile()};
    std::ofstream{directory + "/profile.html"}
        << cudiag::profile_html(profiles, "1a2b3c4d-99-4242");
    std::ofstream{directory + "/profile.pftrace"} << cudiag::perfetto_trace(profiles);
    std::ofstream events{directory + "/" + cudiag::tensorboard_file_name(1'780'000'000, "host")};
    events << cudiag::tensorboard_events(profiles);
    return events.flush() ? 0 : 1;
}
