#include "diagnose/build/steps.h"

#include <sys/wait.h>
#include <algorithm>
#include <csignal>
#include <string_view>

namespace cudiag {
namespace {

std::vector<OpenedFile> opens_in(std::string_view text) {
    std::vector<OpenedFile> opens;
    while (!text.empty()) {
        const auto end = text.find('\0');
        if (end == std::string_view::npos) {
            break;  // cut
        }
        if (end > 1) {
            opens.push_back({std::string{text.substr(1, end - 1)}, text.front() == '+'});
        }
        text.remove_prefix(end + 1);
    }
    return opens;
}

StepLimits limits_of(const EntryRead& entry) {
    return {.cgroup = std::string{entry.text(Field::cgroup)},
            .cgroup_version = entry.number(Field::cgroup_version).value_or(0),
            .memory_limit = entry.number(Field::memory_limit),
            .memory_peak = entry.number(Field::memory_peak),
            .oom_kills = entry.number(Field::oom_kills),
            .process_limit = entry.number(Field::process_limit),
            .processes_refused = entry.number(Field::processes_refused),
            .user_process_limit = entry.number(Field::user_process_limit),
            .mapped_limit = entry.number(Field::mapped_limit)};
}

std::int32_t pid_in(const EntryRead& entry, Field field) {
    return static_cast<std::int32_t>(entry.number(field).value_or(0));
}

void read_program(BuildStep& step, const EntryRead& entry) {
    step.pid = pid_in(entry, Field::pid);
    step.parent = pid_in(entry, Field::parent);
    step.exe = entry.text(Field::path);
    step.cwd = entry.text(Field::working_directory);
    std::string name;
    for (const FieldRead& field : entry.fields) {
        if (field.field == Field::argument) {
            step.argv.push_back(field.text);
        } else if (field.field == Field::name) {
            name = field.text;
        } else if (field.field == Field::value) {
            step.environment[name] = field.text;
        }
    }
    step.argv_cut = entry.number(Field::count).value_or(0) > step.argv.size();
}

void read_end(BuildStep& step, const EntryRead& entry) {
    step.end_ns = entry.realtime_ns;
    step.how = static_cast<EndHow>(entry.number(Field::how).value_or(0));
    step.status = static_cast<int>(entry.number(Field::status).value_or(0));
    step.peak_bytes = entry.number(Field::peak_bytes).value_or(0);
    step.mapped_bytes = entry.number(Field::mapped_bytes).value_or(0);
    step.at_end = limits_of(entry);
    step.opens = opens_in(entry.text(Field::opens));
}

BuildStep* running(std::vector<BuildStep>& steps, std::int32_t pid) {
    const auto found = std::find_if(steps.rbegin(), steps.rend(), [&](const BuildStep& step) {
        return step.pid == pid && !step.ended();
    });
    return found == steps.rend() ? nullptr : &*found;
}

}  // namespace

// By hand, not by std::regex: that needs stack for each byte, and the name may be any bytes.
std::string BuildStep::tool() const {
    std::string_view name = exe;
    name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
    const auto dash = name.rfind('-');
    if (dash != std::string_view::npos && dash + 1 < name.size() && name[dash + 1] != '.' &&
        name.find_first_not_of("0123456789.", dash + 1) == std::string_view::npos) {
        name.remove_suffix(name.size() - dash);  // "-12", "-12.2"
    }
    // "x86_64-linux-gnu-": two words at least, "lto-wrapper" is a name.
    std::size_t target = 0;
    for (std::size_t at = 0, words = 1;; ++words) {
        const auto end = name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", at);
        if (end == std::string_view::npos || end == at || name[end] != '-') {
            break;
        }
        at = end + 1;
        target = words > 1 ? at : 0;
    }
    return std::string{name.substr(target)};
}

const BuildStep* Build::step_of(std::int32_t pid, std::uint64_t time_ns) const {
    const BuildStep* found = nullptr;
    for (const BuildStep& step : steps) {
        if (step.pid == pid && step.start_ns <= time_ns) {
            // A pid may be used again, by a step or by another program; and a step may become
            // another program.
            const bool gone = step.ended() && step.how != EndHow::exec && step.end_ns < time_ns;
            found = gone ? nullptr : &step;
        }
    }
    return found;
}

const BuildStep* Build::last_step_of(std::int32_t pid) const {
    const auto found = std::find_if(steps.rbegin(), steps.rend(),
                                    [&](const BuildStep& step) { return step.pid == pid; });
    return found == steps.rend() ? nullptr : &*found;
}

const BuildStep* Build::parent_of(const BuildStep& step) const {
    if (step.parent == 0 || step.parent == step.pid) {
        return nullptr;
    }
    const BuildStep* parent = step_of(step.parent, step.start_ns);
    // A damaged journal may say that two began each other.
    return parent != nullptr && parent->start_ns < step.start_ns ? parent : nullptr;
}

AskedProgram asked_program_of(const EntryRead& entry) {
    return {.time_ns = entry.realtime_ns,
            .pid = pid_in(entry, Field::pid),
            .parent = pid_in(entry, Field::parent),
            .path = std::string{entry.text(Field::path)},
            .arguments = std::string{entry.text(Field::argument)},
            .error = static_cast<int>(entry.number(Field::error).value_or(0)),
            .status = static_cast<int>(entry.number(Field::status).value_or(0)),
            .places = entry.number(Field::count).value_or(0),
            .limits = limits_of(entry)};
}

std::vector<PythonFrame> frames_of(const EntryRead& entry) {
    std::vector<PythonFrame> frames;
    for (const FieldRead& field : entry.fields) {
        // The shim writes file, line, function for each frame, in this order: a file begins a
        // frame.
        if (field.field == Field::python_file) {
            frames.push_back({field.text, 0, {}});
        } else if (!frames.empty() && field.field == Field::python_line) {
            frames.back().line = field.number;
        } else if (!frames.empty() && field.field == Field::python_function) {
            frames.back().function = field.text;
        }
    }
    return frames;
}

Build build_of(const Recording& journal) {
    Build build;
    build.lost = journal.lost;
    for (const EntryRead& entry : journal.entries) {
        switch (entry.kind) {
            case EntryKind::step_started: {
                BuildStep step;
                read_program(step, entry);
                step.start_ns = entry.realtime_ns;
                step.at_start = limits_of(entry);
                if (BuildStep* before = running(build.steps, step.pid)) {
                    before->how = EndHow::exec;
                    before->end_ns = entry.realtime_ns;
                }
                build.steps.push_back(std::move(step));
                break;
            }
            case EntryKind::step_ended: {
                const std::int32_t pid = pid_in(entry, Field::pid);
                BuildStep* step = running(build.steps, pid);
                if (step == nullptr && !entry.text(Field::path).empty()) {
                    BuildStep shell;  // a shell that did not find what it was asked for
                    read_program(shell, entry);
                    shell.start_ns = entry.realtime_ns;
                    build.steps.push_back(std::move(shell));
                    step = &build.steps.back();
                }
                if (step != nullptr) {
                    read_end(*step, entry);
                }
                break;
            }
            case EntryKind::asked_program: {
                AskedProgram failed = asked_program_of(entry);
                BuildStep* step = running(build.steps, failed.pid);
                if (step != nullptr && failed.error == 0 && WIFSIGNALED(failed.status)) {
                    step->signal = WTERMSIG(failed.status);
                    step->end_ns = failed.time_ns;
                    step->at_end = failed.limits;
                }
                build.asked_programs.push_back(std::move(failed));
                break;
            }
            case EntryKind::lock_held:
            case EntryKind::build_file: {
                FileNote note{.time_ns = entry.realtime_ns,
                              .pid = pid_in(entry, Field::pid),
                              .path = std::string{entry.text(Field::path)},
                              .python = frames_of(entry)};
                (entry.kind == EntryKind::lock_held ? build.locks : build.build_files)
                    .push_back(std::move(note));
                break;
            }
            default:
                break;
        }
    }
    return build;
}

}  // namespace cudiag
