#include "diagnose/nccl/case.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "diagnose/cuda/state.h"
#include "diagnose/cuda/told.h"
#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/case.h"
#include "diagnose/loader/file_version.h"
#include "diagnose/nccl_facts.h"
#include "diagnose/packages/owner.h"
#include "diagnose/say.h"
#include "diagnose/units.h"

namespace cudiag {
namespace {

// What the texts of one message tell together.
struct Words {
    std::string error, result, last_error, version;
    const NcclCause* cause = nullptr;
    TextValues values;
};

std::string value_of(const FoundText& text, const char* key) {
    const auto found = text.values.find(key);
    return found == text.values.end() ? std::string{} : found->second;
}

// Nothing, if the message does not say that NCCL failed. Words of a cause alone are words of NCCL's
// only beside its name: "Call to socket failed" may be anybody's.
std::optional<Words> told_by(const std::string& message) {
    Words told;
    for (const FoundText& text : nccl_texts_of(message)) {
        const auto keep = [&](const char* key, std::string& to) {
            if (to.empty()) {
                to = value_of(text, key);
            }
        };
        keep("result", told.result);
        keep("last_error", told.last_error);
        keep("version", told.version);
        if (told.error.empty() && (text.values.count("result") + text.values.count("cause")) > 0) {
            told.error = text.line;
        }
        if (const std::string cause = value_of(text, "cause");
            !cause.empty() && told.cause == nullptr) {
            told.cause = nccl_cause(cause);
            told.values = text.values;
        }
    }
    const bool named =
        message.find("NCCL") != std::string::npos || message.find("nccl") != std::string::npos;
    if (told.result.empty() && (told.cause == nullptr || !named)) {
        return std::nullopt;
    }
    if (told.cause == nullptr) {
        told.cause = nccl_cause(told.result);
    }
    return told;
}

const std::vector<Module>& last_modules(const Process& process) {
    static const std::vector<Module> none;
    return process.snapshots.empty() ? none : process.snapshots.rbegin()->second;
}

bool has_nccl(const Process& process) {
    const auto& modules = last_modules(process);
    return std::any_of(modules.begin(), modules.end(), [](const Module& module) {
        return library_family(file_name(module.path)) == "nccl";
    });
}

std::string variable_of(const Process& process, const std::string& name) {
    const auto found = process.environment.find(name);
    return found == process.environment.end() ? std::string{} : found->second;
}

std::string ending_of(const Process& process) {
    switch (process.end) {
        case EndHow::none:
            return process.alive ? "" : "killed";
        case EndHow::abort:
            return "abort()";
        default:
            return say("exit status {}", process.end_status);
    }
}

std::size_t count_of_entries(const std::string& list) {
    return list.empty() ? 0
                        : static_cast<std::size_t>(std::count(list.begin(), list.end(), ',')) + 1;
}

std::size_t number_in(const std::string& text) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() ? number : 0;
}

// "0000:07:00.0" for "7000": NCCL writes domain, bus, device and function one after the other, in
// hexadecimal (libnccl's busIdToInt64).
std::string pci_of(const std::string& device) {
    std::uint64_t number = 0;
    const auto [end, error] =
        std::from_chars(device.data(), device.data() + device.size(), number, 16);
    if (device.empty() || error != std::errc{} || end != device.data() + device.size()) {
        return device;
    }
    return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", number >> 20U, (number >> 12U) & 0xffU,
                       (number >> 4U) & 0xffU, number & 0xfU);
}

// "2.21.5" for 22105, as ncclGetVersion writes it from 2.9 on.
std::string release_of(const std::string& code) {
    const std::size_t number = number_in(code);
    return number < 10000
               ? code
               : fmt::format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
}

// Were two ranks of this host started with one and the same GPU to choose from?
bool own_devices_equal(const NcclCase& c) {
    const std::string visible = c.variable("CUDA_VISIBLE_DEVICES");
    return count_of_entries(visible) == 1 &&
           std::any_of(c.facts.processes.begin(), c.facts.processes.end(), [&](const Process& p) {
               return p.pid != c.process.pid && rank_of(p) &&
                      variable_of(p, "CUDA_VISIBLE_DEVICES") == visible;
           });
}

std::pair<std::size_t, std::uint64_t> stale_segments(const NcclCase& c) {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    for (const SharedSegment& segment : c.machine.shared_memory.nccl) {
        if (!segment.mapped) {
            ++count;
            bytes += segment.bytes;
        }
    }
    return {count, bytes};
}

std::string limit_text(std::uint64_t limit) {
    return limit == UINT64_MAX ? "none" : std::to_string(limit);
}

// docker and containerd give a container 64 MB of /dev/shm.
constexpr std::uint64_t kShmOfContainers = 64ULL << 20U;

// The last call before that time which gave this result ("": any error).
const NcclCall* failed_call(const Process& process, const std::string& result,
                            std::uint64_t until_ns) {
    const auto found = std::find_if(
        process.nccl_calls.rbegin(), process.nccl_calls.rend(), [&](const NcclCall& call) {
            return call.result != 0 && call.result != kNotReturned &&
                   (until_ns == 0 || call.time_ns <= until_ns) &&
                   (result.empty() || nccl_result_name(static_cast<int>(call.result)) == result);
        });
    return found == process.nccl_calls.rend() ? nullptr : &*found;
}

// What NCCL itself said of the call, where the program's words do not hand it on.
void complete(Words& told, const NcclCall& call) {
    if (told.result.empty()) {
        told.result = nccl_result_name(static_cast<int>(call.result));
    }
    if (told.last_error.empty()) {
        told.last_error = call.last_error;
    }
    const bool by_result_alone = told.cause == nullptr || told.cause == nccl_cause(told.result);
    for (const FoundText& text : nccl_texts_of(call.last_error)) {
        if (const std::string cause = value_of(text, "cause"); by_result_alone && !cause.empty()) {
            told.cause = nccl_cause(cause);
            told.values = text.values;
            break;
        }
    }
    if (told.cause == nullptr) {
        told.cause = nccl_cause(told.result);
    }
}

void find_library(NcclCase& c) {
    if (c.call != nullptr && !c.call->library.empty()) {
        c.library = c.call->library;
    } else {
        for (const Module& module : last_modules(c.process)) {
            if (library_family(file_name(module.path)) == "nccl") {
                c.library = module.path;
            }
        }
    }
    if (c.version.empty() && !c.library.empty()) {
        c.version = file_version(c.library);
    }
}

// A program without an exception, which ended just after NCCL had failed.
std::optional<NcclCase> case_without_words(const Facts& facts, const Process& process,
                                           const Machine& machine) {
    const NcclCall* call = failed_call(process, "", 0);
    if (call == nullptr || had_other_words(process) ||
        !is_just_before_the_end(process, call->time_ns)) {
        return std::nullopt;
    }
    Words told;
    complete(told, *call);
    NcclCase c{.facts = facts,
               .process = process,
               .machine = machine,
               .error = fmt::format("{}: {} {}", call->name, call->result, call->text),
               .result = told.result,
               .last_error = told.last_error,
               .cause = told.cause,
               .values = told.values,
               .time_ns = call->time_ns,
               .python = call->python,
               .inferred = say("it was NCCL's last error, and the process ended just after it"),
               .call = call,
               .library = {},
               .version = {}};
    find_library(c);
    return c;
}

nlohmann::ordered_json communicators_of(const Process& process) {
    auto list = nlohmann::ordered_json::array();
    for (const NcclCall& call : process.nccl_calls) {
        if (call.ranks || call.rank) {
            const auto known = [](const auto& number) {
                return number ? nlohmann::ordered_json(*number)
                              : nlohmann::ordered_json(say("not known"));
            };
            list.push_back(
                {{"call", call.name},
                 {"rank", known(call.rank)},
                 {"ranks", known(call.ranks)},
                 {"device", known(call.device)},
                 {"result", call.result == kNotReturned ? nlohmann::ordered_json("not returned")
                                                        : nlohmann::ordered_json(call.result)}});
        }
    }
    return list;
}

void add_call(const NcclCase& c, nlohmann::ordered_json& evidence) {
    if (c.call == nullptr) {
        return;
    }
    evidence["call"] = c.call->name;
    evidence["called_by"] = c.call->caller.empty() ? say("not known") : c.call->caller;
    if (c.call->rank) {
        evidence["call_rank"] = *c.call->rank;
    }
    if (c.call->ranks) {
        evidence["call_ranks"] = *c.call->ranks;
    }
    if (c.call->device) {
        evidence["device"] = *c.call->device;
    }
}

}  // namespace

std::string NcclCase::value(const char* key) const {
    const auto found = values.find(key);
    return found == values.end() ? std::string{} : found->second;
}

std::string NcclCase::variable(const std::string& name) const {
    return variable_of(process, name);
}

bool tells_of_nccl(const std::string& message) {
    return told_by(message).has_value();
}

std::optional<NcclCase> nccl_case_of(const Facts& facts, const Process& process,
                                     const Machine& machine) {
    if (!process.failed()) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < process.exceptions.size(); ++i) {
        const PythonException& exception = process.exceptions[i];
        std::optional<Words> told = told_by(exception.message);
        if (!told) {
            continue;
        }
        const NcclCall* call = failed_call(process, told->result, exception.time_ns);
        if (call != nullptr) {
            complete(*told, *call);
        }
        NcclCase c{.facts = facts,
                   .process = process,
                   .machine = machine,
                   .error = exception.type + ": " + told->error,
                   .result = told->result,
                   .last_error = told->last_error,
                   .cause = told->cause,
                   .values = told->values,
                   .time_ns = exception.time_ns,
                   .python = exception.python,
                   .inferred = i == 0
                                   ? ""
                                   : say("another exception was shown in the end, which came from "
                                         "this one"),
                   .call = call,
                   .library = {},
                   .version = told->version};
        find_library(c);
        return c;
    }
    return case_without_words(facts, process, machine);
}

std::optional<std::int64_t> rank_of(const Process& process) {
    const std::string text = variable_of(process, "RANK");
    std::int64_t rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    return error == std::errc{} && !text.empty() && end == text.data() + text.size()
               ? std::optional{rank}
               : std::nullopt;
}

nlohmann::ordered_json ranks_json(const NcclCase& c) {
    auto ranks = nlohmann::ordered_json::array();
    for (const Process& process : c.facts.processes) {
        if (!rank_of(process) && !has_nccl(process) && process.nccl_calls.empty()) {
            continue;
        }
        const auto known = [&](const char* name) {
            const auto found = process.environment.find(name);
            return found == process.environment.end() ? say("not set") : found->second;
        };
        ranks.push_back({{"pid", process.pid},
                         {"rank", known("RANK")},
                         {"local_rank", known("LOCAL_RANK")},
                         {"world_size", known("WORLD_SIZE")},
                         {"cuda_visible_devices", known("CUDA_VISIBLE_DEVICES")},
                         {"communicators", communicators_of(process)},
                         {"ended", ending_of(process)}});
    }
    return ranks;
}

std::size_t visible_gpus(const NcclCase& c) {
    if (const auto visible = c.process.environment.find("CUDA_VISIBLE_DEVICES");
        visible != c.process.environment.end()) {
        return count_of_entries(visible->second);
    }
    constexpr std::string_view kGpu = "/dev/nvidia";
    const auto& nodes = c.machine.device_nodes;
    return static_cast<std::size_t>(
        std::count_if(nodes.begin(), nodes.end(), [&](const std::string& node) {
            return node.size() > kGpu.size() && node.rfind(kGpu, 0) == 0 &&
                   std::all_of(node.begin() + kGpu.size(), node.end(),
                               [](char digit) { return digit >= '0' && digit <= '9'; });
        }));
}

std::map<std::string, bool> states_of(const NcclCase& c) {
    const Machine& machine = c.machine;
    const SharedMemory& shm = machine.shared_memory;
    const std::size_t gpus = visible_gpus(c);
    const std::size_t processes = number_in(c.variable("LOCAL_WORLD_SIZE"));
    // With a list of its own for each rank, what one sees is not what all of them have.
    const bool own_lists = c.process.environment.count("CUDA_VISIBLE_DEVICES") > 0 && gpus == 1;
    constexpr const char* kSinceHostMemory = "2.23";
    return {
        {"container", !machine.container.empty()},
        {"docker", machine.container == "docker"},
        {"podman", machine.container == "podman"},
        {"apptainer", machine.container == "apptainer"},
        {"kubernetes", machine.container == "kubernetes"},
        {"local_rank", !c.variable("LOCAL_RANK").empty()},
        {"more_processes_than_gpus", gpus > 0 && !own_lists && processes > gpus},
        {"own_devices_equal", own_devices_equal(c)},
        {"shm_known", shm.known},
        {"size_of_containers", shm.known && shm.size == kShmOfContainers},
        {"stale_segments", stale_segments(c).first > 0},
        {"cumem_host", !c.version.empty() && compare_versions(c.version, kSinceHostMemory) >= 0},
        {"cumem_host_off", c.variable("NCCL_CUMEM_HOST_ENABLE") == "0"},
        {"memlock_limited", machine.locked_memory.soft != UINT64_MAX},
        {"files_can_be_raised", machine.open_files.soft < machine.open_files.hard}};
}

std::map<std::string, std::string> words_of(const NcclCase& c) {
    std::map<std::string, std::string> words{c.values.begin(), c.values.end()};
    for (const char* version : {"a_version", "b_version"}) {
        if (words.count(version) > 0) {
            words[version] = release_of(words[version]);
        }
    }
    if (words.count("call") == 0) {
        words["call"] = "";
    }
    const auto [stale, stale_bytes] = stale_segments(c);
    const std::uint64_t size = c.machine.shared_memory.size;
    constexpr std::uint64_t kGiga = 1ULL << 30U;
    words["pci"] = pci_of(c.value("device"));
    words["last_error"] =
        c.last_error.empty() ? say("the program did not show NCCL's last error") : c.last_error;
    words["gpus"] = std::to_string(visible_gpus(c));
    words["processes"] = c.variable("LOCAL_WORLD_SIZE");
    words["visible"] = c.variable("CUDA_VISIBLE_DEVICES");
    words["stale"] = std::to_string(stale);
    words["stale_size"] = bytes_text(stale_bytes);
    words["larger"] = fmt::format("{}G", std::max<std::uint64_t>(8, 2 * size / kGiga));
    words["files"] = limit_text(c.machine.open_files.soft);
    return words;
}

Finding begin_finding(const NcclCase& c) {
    const auto states = states_of(c);
    const auto words = words_of(c);
    Finding finding;
    finding.slug = c.cause->slug;
    finding.title = say_filled(c.cause->title, words);
    finding.confidence =
        c.inferred.empty() && !c.cause->likely ? Confidence::certain : Confidence::likely;
    finding.pid = c.process.pid;
    finding.argv = c.process.argv;
    finding.time_ns = c.time_ns != 0 ? c.time_ns : c.process.end_time_ns;
    finding.python = c.python;
    finding.evidence["error"] = c.error;
    finding.evidence["result"] = c.result.empty() ? say("not told") : c.result;
    finding.evidence["last_error"] = c.last_error.empty() ? say("not shown") : c.last_error;
    finding.evidence["meaning"] = say_known(c.cause->meaning);
    finding.evidence["nccl"] =
        c.library.empty() ? say("no libnccl mapped (it may be linked in)") : c.library;
    finding.evidence["nccl_version"] = c.version.empty() ? say("not known") : c.version;
    const auto rank = rank_of(c.process);
    finding.evidence["rank"] = rank ? std::to_string(*rank) : say("not known");
    add_call(c, finding.evidence);
    for (const NcclRemedy& remedy : c.cause->remedies) {
        if (hold(states, remedy.when)) {
            finding.fixes.push_back(
                {say_filled(remedy.text, words), filled(remedy.command, words), false});
        }
    }
    finding.limits = c.inferred.empty() ? say_known(c.cause->limits)
                                        : say("that the process ended of this is inferred: {}; {}",
                                              c.inferred, say_known(c.cause->limits));
    return finding;
}

}  // namespace cudiag
