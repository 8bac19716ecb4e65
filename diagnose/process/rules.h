// Rules about whole processes and about which error is the first.
#pragma once

#include <optional>
#include <vector>

#include "diagnose/facts.h"

namespace cudiag {

// A process that died by a signal, or vanished without a word.
std::optional<Finding> process_killed(const Process& process,
                                      const std::vector<ChildDeath>& seen_by_parents);

// A recording that lost something.
std::optional<Finding> record_incomplete(const Process& process);

// The same of a build's journal.
std::optional<Finding> journal_incomplete(const Facts& facts);

// Why a failed load is told at all: what ties it to the end of the process.
enum class Tie : unsigned char {
    none,       // a probe, as far as can be told: silence
    named,      // the exception that ended the process carries its text
    swallowed,  // certain breakage that the program did not report; another error was seen instead,
                // if any
    last_word   // no exception is known, and a known library failed to load just before the end
};
Tie tie_of(const Process& process, const LoadFailure& failure);

// Does what ended the process have to do with CUDA, as far as its exceptions tell? True where none
// is known.
bool may_be_about_cuda(const Process& process);

// The error that the user saw, when it is another than that of `cause`.
std::optional<Finding> hidden_cause(const Process& process, const LoadFailure& failure,
                                    const Finding& cause, Tie tie);

}  // namespace cudiag
