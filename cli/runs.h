// Where runs lie, and the files of one run beside its recordings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/facts.h"
#include "diagnose/optimizer/profile.h"

namespace cudiag {

// CUDIAG_DIR, else $XDG_STATE_HOME/cudiag/runs, else ~/.local/state/cudiag/runs, else
// /tmp/cudiag-UID/runs: as the shim does (shim/run_directory.cpp).
std::string runs_directory();

// Where the files of cards lie (diagnose/optimizer/card.h), the one to write to first:
// $CUDIAG_DIR/cards if that is set, and `cards` beside the usual `runs`.
std::vector<std::string> card_directories();

// Writes a file beside and renames it: a reader never sees half of it, and a full disk leaves the
// old one. Readable by its owner alone. False if it could not be written.
bool write_whole(const std::string& path, const std::string& text);

// Directories of all runs, the newest first.
std::vector<std::string> all_runs();

// The directory of a run by its path or name; nothing if there is none.
std::optional<std::string> find_run(const std::string& name);

// The directory that the shim uses for a run whose root is this process.
std::string run_directory_of(std::int32_t root_pid, std::uint64_t root_start_ticks);

// Removes a run that the shim named; others are their owner's.
void remove_run(const std::string& run);

// Removes old runs: keeps the newest 50 and at most 1 GB. Runs under another name than the shim
// gives are kept: somebody renamed them to have them kept. Never the one named.
void prune_runs(const std::string& but);

// Findings of the run: those judged when it happened, if nothing was recorded since, for the file
// system may have been mended meanwhile; else judged now, and saved beside the recordings.
std::vector<Finding> findings_of(const Facts& facts);

// The run's profiles (CUDIAG_PROFILE), compared with the cards that were measured.
std::vector<Profile> profiles_of(const Facts& facts);

// Without the notes that say what a profile's block says (render_profile).
std::vector<Finding> without_profiles(std::vector<Finding> findings);

// Notes how a process ended as its parent saw it (wait(2) status) in the run's run.json.
void note_death(const std::string& run, std::int32_t pid, int status);

// Keys of findings that were printed in place already; claim returns those of `findings` that were
// not, and notes them.
std::vector<Finding> claim_for_printing(const std::string& run,
                                        const std::vector<Finding>& findings);

}  // namespace cudiag
