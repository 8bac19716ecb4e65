// Prints a recording as lines of JSON, the header first: {"kind": "dlopen_failed", "fields":
// [["name", "libx.so"], …]}. For tests; exit status 1 when the file is no recording.
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "record/reader.h"

namespace {

using cudiag::EntryKind;
using cudiag::Field;
using Json = nlohmann::ordered_json;

std::string name_of(EntryKind kind) {
    switch (kind) {
        case EntryKind::process:
            return "process";
        case EntryKind::variable:
            return "variable";
        case EntryKind::module:
            return "module";
        case EntryKind::snapshot:
            return "snapshot";
        case EntryKind::dlopen_failed:
            return "dlopen_failed";
        case EntryKind::dlsym_failed:
            return "dlsym_failed";
        case EntryKind::python_exception:
            return "python_exception";
        case EntryKind::child_ended:
            return "child_ended";
        case EntryKind::exec:
            return "exec";
        case EntryKind::given_up:
            return "given_up";
        case EntryKind::step_started:
            return "step_started";
        case EntryKind::step_ended:
            return "step_ended";
        case EntryKind::asked_program:
            return "asked_program";
        case EntryKind::lock_held:
            return "lock_held";
        case EntryKind::build_file:
            return "build_file";
        case EntryKind::cuda_driver:
            return "cuda_driver";
        case EntryKind::cuda_call_failed:
            return "cuda_call_failed";
        case EntryKind::cuda_function:
            return "cuda_function";
        case EntryKind::cuda_log:
            return "cuda_log";
        case EntryKind::cuda_graph:
            return "cuda_graph";
        case EntryKind::cuda_site:
            return "cuda_site";
        case EntryKind::cuda_tracking:
            return "cuda_tracking";
        case EntryKind::cuda_core:
            return "cuda_core";
        case EntryKind::profile:
            return "profile";
        case EntryKind::profile_window:
            return "profile_window";
        case EntryKind::profile_lacks:
            return "profile_lacks";
        case EntryKind::profile_client:
            return "profile_client";
        case EntryKind::profile_device:
            return "profile_device";
        case EntryKind::profile_name:
            return "profile_name";
        case EntryKind::device_records:
            return "device_records";
        case EntryKind::optimizer:
            return "optimizer";
        case EntryKind::optimizer_step:
            return "optimizer_step";
        case EntryKind::nccl_call:
            return "nccl_call";
        case EntryKind::native_exception:
            return "native_exception";
        case EntryKind::cuda_code_slow:
            return "cuda_code_slow";
        case EntryKind::runtime_error_asked:
            return "runtime_error_asked";
        case EntryKind::cuda_context_gone:
            return "cuda_context_gone";
    }
    return std::to_string(static_cast<int>(kind));
}

std::string name_of(Field field) {
    constexpr const char* kTexts[] = {"",
                                      "path",
                                      "name",
                                      "value",
                                      "text",
                                      "argument",
                                      "working_directory",
                                      "caller",
                                      "python_file",
                                      "python_function",
                                      "type",
                                      "cgroup",
                                      "opens"};
    constexpr const char* kNumbers[] = {"python_line",    "flags",
                                        "caller_offset",  "snapshot",
                                        "index",          "base",
                                        "tls_bytes",      "pid",
                                        "status",         "link_namespace",
                                        "certain",        "device",
                                        "inode",          "chain",
                                        "root",           "parent",
                                        "start_ticks",    "how",
                                        "error",          "peak_bytes",
                                        "mapped_bytes",   "mapped_limit",
                                        "memory_limit",   "memory_peak",
                                        "oom_kills",      "cgroup_version",
                                        "process_limit",  "processes_refused",
                                        "count",          "user_process_limit",
                                        "driver_version", "bytes_asked",
                                        "bytes_free",     "bytes_total",
                                        "handle",         "of_handle",
                                        "stream",         "grid",
                                        "block",          "shared_bytes",
                                        "level",          "device_ordinal",
                                        "limit",          "function_limit",
                                        "code_offset",    "launched"};
    constexpr const char* kLater[] = {"rank", "ranks", "duration_ns", "communicator"};
    if (field == Field::last_error) {
        return "last_error";
    }
    const auto number = static_cast<std::size_t>(field);
    if (const auto first = static_cast<std::size_t>(Field::rank);
        number >= first && number - first < std::size(kLater)) {
        return kLater[number - first];
    }
    if (number < std::size(kTexts)) {
        return kTexts[number];
    }
    constexpr const char* kOfProfiles[] = {"cupti_version", "kept",  "dropped",
                                           "not_kept",      "spent", "shared"};
    if (number >= 160 && number - 160 < std::size(kOfProfiles)) {
        return kOfProfiles[number - 160];
    }
    return number >= 64 && number - 64 < std::size(kNumbers) ? kNumbers[number - 64]
                                                             : std::to_string(number);
}

// The structures of a profile as lists of their members.
Json records_in(const cudiag::EntryRead& entry, const std::string& bytes) {
    Json list = Json::array();
    const auto each = [&](auto record, auto members) {
        for (std::size_t at = 0; at + sizeof record <= bytes.size(); at += sizeof record) {
            std::memcpy(&record, bytes.data() + at, sizeof record);
            list.push_back(members(record));
        }
    };
    if (entry.kind == EntryKind::optimizer_step) {
        each(cudiag::StepRecord{}, [](const cudiag::StepRecord& step) {
            return Json{{"optimizer", step.optimizer},
                        {"profiled", step.profiled},
                        {"number", step.number},
                        {"begin", step.begin},
                        {"end", step.end},
                        {"launches_before", step.launches_before},
                        {"launches_after", step.launches_after},
                        {"loads", step.loads},
                        {"loading", step.loading},
                        {"allocations", step.allocations},
                        {"allocating", step.allocating}};
        });
    } else {
        each(cudiag::DeviceRecord{}, [](const cudiag::DeviceRecord& record) {
            return Json{{"kind", record.kind},      {"begin", record.begin},
                        {"end", record.end},        {"name", record.name},
                        {"bytes", record.bytes},    {"correlation", record.correlation},
                        {"stream", record.stream},  {"blocks", record.blocks},
                        {"threads", record.threads}};
        });
    }
    return list;
}

void print(const Json& line) {
    std::puts(line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace

int main(int count, char** arguments) {
    const cudiag::ReadResult read = cudiag::read_recording(count == 2 ? arguments[1] : "");
    if (!read.recording) {
        std::puts(read.error.why.c_str());
        return 1;
    }
    const cudiag::Header& header = read.recording->header;
    const cudiag::Losses& lost = read.recording->lost;
    print({{"kind", "header"},
           {"fields", Json::array({{"pid", header.pid},
                                   {"ppid", header.ppid},
                                   {"root_pid", header.root_pid},
                                   {"end_how", header.end_how},
                                   {"end_status", header.end_status},
                                   {"dropped", lost.dropped_entries},
                                   {"torn", lost.torn_entries},
                                   {"damage", lost.damage}})}});
    for (const cudiag::EntryRead& entry : read.recording->entries) {
        Json fields = Json::array();
        for (const cudiag::FieldRead& field : entry.fields) {
            if (field.field == Field::records) {
                fields.push_back(Json::array({"records", records_in(entry, field.text)}));
                continue;
            }
            const bool is_number = static_cast<int>(field.field) >= 64;
            fields.push_back(Json::array(
                {name_of(field.field), is_number ? Json(field.number) : Json(field.text)}));
        }
        print({{"kind", name_of(entry.kind)}, {"fields", fields}});
    }
    for (const cudiag::HotRead& hot : read.recording->hot) {
        print({{"kind", "hot"},
               {"fields",
                Json::array(
                    {Json::array({"kind", hot.kind}), Json::array({"time_ns", hot.realtime_ns}),
                     Json::array({"ticks", hot.ticks}), Json::array({"tid", hot.tid}),
                     Json::array({"flags", hot.flags}), Json::array({"words", hot.words})})}});
    }
    for (const cudiag::ProgressSlot& slot : read.recording->progress) {
        print({{"kind", "progress"},
               {"fields", Json::array({Json::array({"stream", slot.stream}),
                                       Json::array({"launched", slot.launched}),
                                       Json::array({"finished", slot.finished})})}});
    }
    return 0;
}
