#include "diagnose/nccl_facts.h"

#include <map>

#include "diagnose/build/steps.h"

namespace cudiag {
namespace {

NcclCall call_of(const EntryRead& entry) {
    NcclCall call;
    call.time_ns = entry.realtime_ns;
    call.tid = static_cast<std::int32_t>(entry.tid);
    call.name = entry.text(Field::name);
    call.result = entry.number(Field::error).value_or(kNotReturned);
    call.text = entry.text(Field::text);
    call.last_error = entry.text(Field::last_error);
    call.library = entry.text(Field::path);
    call.caller = entry.text(Field::caller);
    call.caller_offset = entry.number(Field::caller_offset).value_or(0);
    call.python = frames_of(entry);
    call.rank = entry.number(Field::rank);
    call.ranks = entry.number(Field::ranks);
    if (const auto device = entry.number(Field::device_ordinal)) {
        call.device = static_cast<std::int32_t>(*device);
    }
    call.communicator = entry.number(Field::communicator).value_or(0);
    call.duration_ns = entry.number(Field::duration_ns).value_or(0);
    return call;
}

}  // namespace

void add_nccl_facts(const Recording& recording, Process& process) {
    std::map<std::int32_t, NcclCall> entered;  // by thread
    for (const EntryRead& entry : recording.entries) {
        if (entry.kind != EntryKind::nccl_call) {
            continue;
        }
        NcclCall call = call_of(entry);
        if (call.result == kNotReturned) {
            entered[call.tid] = std::move(call);
        } else {
            entered.erase(call.tid);
            process.nccl_calls.push_back(std::move(call));
        }
    }
    for (auto& [thread, call] : entered) {
        process.nccl_calls.push_back(std::move(call));
    }
}

}  // namespace cudiag
