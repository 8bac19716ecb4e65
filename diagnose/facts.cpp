#include "diagnose/facts.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "diagnose/cuda_facts.h"
#include "diagnose/elf/elf_file.h"
#include "diagnose/nccl_facts.h"
#include "diagnose/proc.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

LoadFailure failure_of(const EntryRead& entry) {
    return {.time_ns = entry.realtime_ns,
            .tid = static_cast<std::int32_t>(entry.tid),
            .is_lookup = entry.kind == EntryKind::dlsym_failed,
            .breakage = entry.number(Field::certain).value_or(0) == 1,
            .asked = std::string{entry.text(Field::name)},
            .flags = entry.number(Field::flags).value_or(0),
            .error = std::string{entry.text(Field::text)},
            .caller = std::string{entry.text(Field::caller)},
            .caller_offset = entry.number(Field::caller_offset).value_or(0),
            .python = frames_of(entry),
            .snapshot = entry.number(Field::snapshot).value_or(0)};
}

// As str() of the exception would give it: of an OSError its number, text and file; of several
// arguments all that are text, as a tuple shows them.
std::string message_of(const EntryRead& entry) {
    std::string message{entry.text(Field::text)};
    if (const auto number = entry.number(Field::error)) {
        message = "[Errno " + std::to_string(*number) + "] " + message;
        if (const auto file = entry.text(Field::path); !file.empty()) {
            message += ": '" + std::string{file} + "'";
        }
        return message;
    }
    std::string others;
    for (const FieldRead& field : entry.fields) {
        if (field.field == Field::value) {
            others += ", '" + field.text + "'";
        }
    }
    return others.empty() ? message : "('" + message + "'" + others + ")";
}

// "c10::DistBackendError", as the exception's type_info names it: a type without "_Z".
PythonException native_exception_of(const EntryRead& entry) {
    return {.time_ns = entry.realtime_ns,
            .type = demangle("_Z" + std::string{entry.text(Field::type)}),
            .message = std::string{entry.text(Field::text)},
            .python = {},
            .chain = 0,
            .native = true};
}

Module module_of(const EntryRead& entry) {
    return {.path = std::string{entry.text(Field::path)},
            .base = entry.number(Field::base).value_or(0),
            .tls_bytes = entry.number(Field::tls_bytes).value_or(0),
            .device = entry.number(Field::device).value_or(0),
            .inode = entry.number(Field::inode).value_or(0),
            .shim = entry.number(Field::root).value_or(0) == 1};
}

void note_process(Process& process, const EntryRead& entry) {
    process.exe = entry.text(Field::path);
    process.cwd = entry.text(Field::working_directory);
    for (const FieldRead& field : entry.fields) {
        if (field.field == Field::argument) {
            process.argv.push_back(field.text);
        }
    }
}

std::vector<ChildDeath> deaths_noted(const std::string& run_directory) {
    std::vector<ChildDeath> deaths;
    std::ifstream file{run_directory + "/run.json"};
    const auto about = nlohmann::json::parse(file, nullptr, false);
    if (!about.is_object() || !about.contains("deaths") || !about["deaths"].is_array()) {
        return deaths;
    }
    for (const auto& death : about["deaths"]) {
        if (death.is_object()) {
            deaths.push_back({.pid = death.value("pid", 0), .status = death.value("status", 0)});
        }
    }
    return deaths;
}

bool still_running(const Header& header) {
    const auto ticks = start_ticks_of(header.pid);
    return ticks && (header.start_ticks == 0 || *ticks == header.start_ticks);
}

}  // namespace

const std::vector<Module>& Process::modules_at(std::uint64_t snapshot) const {
    static const std::vector<Module> none;
    const auto found = snapshots.find(snapshot);
    return found == snapshots.end() ? none : found->second;
}

bool Process::failed() const {
    switch (end) {
        case EndHow::none:
            return !alive;
        case EndHow::abort:
            return true;
        case EndHow::exec:
            return false;
        case EndHow::exit:
        case EndHow::exit_now:
        case EndHow::quick_exit:
            return end_status != 0;
    }
    return false;
}

Process facts_of(const Recording& recording) {
    Process process;
    const Header& header = recording.header;
    process.recording = recording.path;
    process.pid = header.pid;
    process.ppid = header.ppid;
    process.root_pid = header.root_pid;
    process.start_ticks = header.start_ticks;
    process.start_time_ns = header.open_realtime_ns;
    process.end = static_cast<EndHow>(header.end_how);
    process.end_status = header.end_status;
    process.end_time_ns = header.end_realtime_ns;
    process.alive = process.end == EndHow::none && still_running(header);
    process.lost = recording.lost;

    std::vector<Module> list;
    for (const EntryRead& entry : recording.entries) {
        switch (entry.kind) {
            case EntryKind::process:
                note_process(process, entry);
                break;
            case EntryKind::variable:
                process.environment[std::string{entry.text(Field::name)}] =
                    entry.text(Field::value);
                break;
            case EntryKind::module:
                list.push_back(module_of(entry));
                break;
            case EntryKind::snapshot:
                process.snapshots[entry.number(Field::snapshot).value_or(0)] = std::move(list);
                list.clear();
                break;
            case EntryKind::dlopen_failed:
            case EntryKind::dlsym_failed:
                process.failures.push_back(failure_of(entry));
                break;
            case EntryKind::python_exception:
                process.exceptions.push_back({.time_ns = entry.realtime_ns,
                                              .type = std::string{entry.text(Field::type)},
                                              .message = message_of(entry),
                                              .python = frames_of(entry),
                                              .chain = entry.number(Field::chain).value_or(0)});
                break;
            case EntryKind::native_exception:
                process.exceptions.push_back(native_exception_of(entry));
                break;
            case EntryKind::child_ended:
                process.deaths.push_back(
                    {.time_ns = entry.realtime_ns,
                     .pid = static_cast<std::int32_t>(entry.number(Field::pid).value_or(0)),
                     .status = static_cast<int>(entry.number(Field::status).value_or(0))});
                break;
            case EntryKind::asked_program:
                process.asked_programs.push_back(asked_program_of(entry));
                break;
            case EntryKind::profile_lacks:
                process.no_profile = entry.text(Field::text);
                break;
            case EntryKind::cuda_driver:
            case EntryKind::cuda_call_failed:
            case EntryKind::cuda_function:
            case EntryKind::cuda_log:
            case EntryKind::cuda_graph:
            case EntryKind::cuda_site:
            case EntryKind::cuda_tracking:
            case EntryKind::profile:
            case EntryKind::profile_window:
            case EntryKind::profile_client:
            case EntryKind::profile_device:
            case EntryKind::profile_name:
            case EntryKind::device_records:
            case EntryKind::optimizer:
            case EntryKind::optimizer_step:  // of profiles: diagnose/optimizer/recorded.cpp
            case EntryKind::cuda_core:
            case EntryKind::cuda_code_slow:
            case EntryKind::runtime_error_asked:
            case EntryKind::cuda_context_gone:  // of CUDA: add_cuda_facts
            case EntryKind::nccl_call:          // of NCCL: add_nccl_facts
            case EntryKind::exec:
            case EntryKind::given_up:
            case EntryKind::step_started:  // of the journal
            case EntryKind::step_ended:
            case EntryKind::lock_held:
            case EntryKind::build_file:
                break;
        }
    }
    add_cuda_facts(recording, process);
    add_nccl_facts(recording, process);
    return process;
}

Process process_of(const Facts& facts, std::int32_t pid) {
    for (const Process& process : facts.processes) {
        if (process.pid == pid) {
            return process;
        }
    }
    Process process;
    process.pid = pid;
    process.argv = command_line_of(pid);
    process.environment = environment_of(pid);
    std::error_code error;
    const fs::path proc{"/proc/" + std::to_string(pid)};
    process.exe = fs::read_symlink(proc / "exe", error).string();
    process.cwd = fs::read_symlink(proc / "cwd", error).string();
    process.alive = !process.argv.empty();
    return process;
}

namespace {

// "5f0c22d1-1234567-4711" of the run's directory: is that root, which started then, still there,
// and has it not said that it ends?
bool root_runs(const Facts& facts) {
    const std::string name = fs::path{facts.run_directory}.filename().string();
    const auto first = name.find('-');
    const auto last = name.rfind('-');
    if (first == std::string::npos || first == last) {
        return false;
    }
    const std::int32_t pid = std::atoi(name.c_str() + last + 1);
    const auto ticks = start_ticks_of(pid);
    if (!ticks || std::to_string(*ticks) != name.substr(first + 1, last - first - 1)) {
        return false;
    }
    const bool recorded_end = std::any_of(
        facts.processes.begin(), facts.processes.end(),
        [&](const Process& process) { return process.pid == pid && process.end != EndHow::none; });
    const BuildStep* step = facts.build.last_step_of(pid);
    return !recorded_end && (step == nullptr || !step->ended());
}

}  // namespace

Facts gather_facts(const std::string& run_directory) {
    Facts facts;
    facts.run_directory = run_directory;
    std::vector<std::string> paths;
    std::vector<std::string> profiles;
    std::error_code error;
    for (const auto& file : fs::directory_iterator(run_directory, error)) {
        if (file.path().extension() == ".rec") {
            paths.push_back(file.path().string());
        } else if (file.path().extension() == kProfileSuffix) {
            profiles.push_back(file.path().string());
        }
    }
    if (error) {
        facts.unreadable.push_back(run_directory + ": " + error.message());
    }
    facts.deaths = deaths_noted(run_directory);
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) {
        ReadResult result = read_recording(path);
        if (result.recording) {
            facts.processes.push_back(facts_of(*result.recording));
        } else {
            facts.unreadable.push_back(path + ": " + result.error.why);
        }
    }
    std::sort(profiles.begin(), profiles.end());
    for (const std::string& path : profiles) {
        const ReadResult result = read_recording(path);
        if (result.recording) {
            facts.profiles.push_back(recorded_profile_of(*result.recording));
        } else {
            facts.unreadable.push_back(path + ": " + result.error.why);
        }
    }
    const std::string journal = run_directory + "/" + kJournalName;
    if (fs::exists(journal, error)) {
        const ReadResult result = read_journal(journal);
        if (result.recording) {
            facts.build = build_of(*result.recording);
        } else {
            facts.unreadable.push_back(journal + ": " + result.error.why);
        }
    }
    facts.root_runs = root_runs(facts);
    std::stable_sort(facts.processes.begin(), facts.processes.end(),
                     [](const Process& a, const Process& b) {
                         const bool a_root = a.pid == a.root_pid;
                         const bool b_root = b.pid == b.root_pid;
                         return a_root != b_root ? a_root : a.start_time_ns < b.start_time_ns;
                     });
    return facts;
}

}  // namespace cudiag
