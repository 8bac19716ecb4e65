#include <fmt/core.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>

#include "diagnose/cuda/running.h"
#include "diagnose/cuda/suspects.h"
#include "diagnose/nccl_facts.h"
#include "diagnose/process/rules.h"
#include "diagnose/say.h"
#include "record/format.h"

namespace cudiag {
namespace {

const char* signal_name(int signal) {
    const char* name = sigabbrev_np(signal);
    return name == nullptr ? "?" : name;
}

// Where each stream of the GPU stood, which its marks tell: a kernel that does not end leaves its
// program nothing but a signal.
void add_unfinished(const Process& process, Finding& finding) {
    const Suspects running =
        suspects_of({.process = process, .told = {}, .failed = nullptr, .sticky = false});
    if (running.pinned != Pinned::marked) {
        return;
    }
    auto launches = nlohmann::ordered_json::array();
    for (const CudaLaunch* launch : running.launches) {
        launches.push_back(launch_json(*launch, nullptr));
    }
    finding.evidence["unfinished"] = std::move(launches);
    finding.evidence["unfinished_launches"] = running.pending;
    const CudaLaunch& first = *running.launches.front();
    finding.title += say("; the GPU had not finished {}", launch_name(first));
    if (running.launches.size() == 1) {
        finding.python = first.python;
    }
}

// NCCL makes a communicator once all its ranks have come: whoever waits there for one that does not
// is left with a signal, too.
void add_waiting_for_ranks(const Process& process, Finding& finding) {
    for (const NcclCall& call : process.nccl_calls) {
        // Of a recording that is not whole, the return may be what is lost.
        if (call.result != kNotReturned || process.lost.any()) {
            continue;
        }
        const auto number = [](const std::optional<std::uint64_t>& known) {
            return known ? std::to_string(*known) : std::string{"?"};
        };
        finding.title += say("; it was in {}, as rank {} of {}", call.name, number(call.rank),
                             number(call.ranks));
        finding.evidence["in_nccl"] = {{"call", call.name},
                                       {"rank", number(call.rank)},
                                       {"ranks", number(call.ranks)},
                                       {"entered_ns", call.time_ns}};
        finding.python = call.python;
        return;
    }
}

// Who uses a stream of a context that is gone may be killed for it by cudart itself (SIGSEGV, seen
// on an H200 after cudaDeviceReset).
void add_context_gone(const Process& process, int signal, Finding& finding) {
    const bool sent = signal != 0 && signal != SIGSEGV && signal != SIGBUS && signal != SIGABRT;
    const auto found =
        std::find_if(process.contexts_gone.rbegin(), process.contexts_gone.rend(), is_reset);
    if (sent || found == process.contexts_gone.rend()) {
        return;
    }
    const ContextGone& gone = *found;
    finding.title += say("; {} had destroyed a context of CUDA before", gone.call);
    finding.evidence["context_destroyed_by"] = gone.call;
    if (!gone.python.empty()) {
        const PythonFrame& frame = gone.python.front();
        finding.evidence["context_destroyed_at"] =
            say("{}:{} in {}", frame.file, frame.line, frame.function);
    }
}

// The exception that nobody caught, where that is what ended it.
void add_exception(const Process& process, Finding& finding) {
    if (process.exceptions.empty() || !process.exceptions.front().native) {
        return;
    }
    constexpr std::size_t kLongest = 300;
    const PythonException& thrown = process.exceptions.front();
    const std::string line = thrown.message.substr(0, thrown.message.find('\n'));
    finding.evidence["exception"] = thrown.type;
    finding.evidence["exception_text"] = line;
    finding.title += say(": nobody caught {}{}", thrown.type,
                         line.empty() ? "" : ": " + line.substr(0, kLongest));
}

}  // namespace

std::optional<Finding> process_killed(const Process& process,
                                      const std::vector<ChildDeath>& seen_by_parents) {
    const bool aborted = process.end == EndHow::abort;
    if (!aborted && (process.end != EndHow::none || process.alive)) {
        return std::nullopt;
    }
    int signal = aborted ? SIGABRT : 0;
    for (const ChildDeath& death : seen_by_parents) {
        if (death.pid == process.pid && WIFSIGNALED(death.status)) {
            signal = WTERMSIG(death.status);
        }
    }
    Finding finding;
    finding.slug = "process-killed";
    finding.severity = Severity::error;
    finding.confidence = signal != 0 ? Confidence::certain : Confidence::likely;
    finding.pid = process.pid;
    finding.argv = process.argv;
    finding.time_ns = process.end_time_ns != 0 ? process.end_time_ns : process.start_time_ns;
    finding.title =
        signal != 0 ? say("process {} died by SIG{}", process.pid, signal_name(signal))
                    : say("process {} vanished without an exit: killed by a signal", process.pid);
    finding.evidence["signal"] =
        signal != 0 ? fmt::format("SIG{}", signal_name(signal)) : say("not seen");
    auto last = nlohmann::ordered_json::array();
    const std::size_t from = process.failures.size() > 5 ? process.failures.size() - 5 : 0;
    for (std::size_t i = from; i < process.failures.size(); ++i) {
        last.push_back(process.failures[i].error);
    }
    finding.evidence["last_events"] = std::move(last);
    finding.evidence["exit_path"] =
        aborted ? "abort()" : say("none of exit, _exit, quick_exit, abort or exec was called");
    if (aborted) {
        add_exception(process, finding);
    }
    add_unfinished(process, finding);
    add_waiting_for_ranks(process, finding);
    add_context_gone(process, signal, finding);
    finding.limits = signal != 0
                         ? say("names the signal, not its sender")
                         : say("which signal it was is known to the parent process only (start "
                               "it with `cudiag run` to have it "
                               "noted); a raw exit system call looks the same");
    return finding;
}

namespace {

std::optional<Finding> incomplete(const Losses& lost, const std::string& file, std::string title) {
    if (!lost.any()) {
        return std::nullopt;
    }
    Finding finding;
    finding.slug = "record-incomplete";
    finding.severity = Severity::warning;
    finding.title = std::move(title);
    finding.evidence["recording"] = file;
    finding.evidence["torn_entries"] = lost.torn_entries;
    finding.evidence["dropped_entries"] = lost.dropped_entries;
    finding.evidence["torn_records"] = lost.torn_records;
    finding.evidence["refused_threads"] = lost.refused_threads;
    finding.evidence["damage"] = lost.damage;
    finding.limits = say("what is missing is not known; what is shown is whole");
    return finding;
}

}  // namespace

std::optional<Finding> record_incomplete(const Process& process) {
    auto finding = incomplete(process.lost, process.recording,
                              say("the recording of process {} is not whole", process.pid));
    if (finding) {
        finding->pid = process.pid;
        finding->argv = process.argv;
        finding->time_ns = process.start_time_ns;
    }
    return finding;
}

std::optional<Finding> journal_incomplete(const Facts& facts) {
    auto finding =
        incomplete(facts.build.lost, facts.run_directory + "/" + kJournalName,
                   say("the journal of the build is not whole: steps of it may be missing"));
    if (finding && !facts.processes.empty()) {
        finding->pid = facts.processes.front().root_pid;
        finding->argv = facts.processes.front().argv;
        finding->time_ns = facts.processes.front().start_time_ns;
    }
    return finding;
}

}  // namespace cudiag
