#include "diagnose/cuda/told.h"

#include <fmt/core.h>

#include <algorithm>

#include "diagnose/knowledge/cuda.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

std::optional<Told> told_by(const Process& process, const PythonException& exception) {
    for (const CudaText& text : cuda_texts_of(exception.message)) {
        if (text.code == 0) {
            continue;
        }
        Told told;
        told.code = text.code;
        told.error = exception.type + ": " + text.line;
        if (const auto call = text.values.find("call"); call != text.values.end()) {
            told.call = call->second;
        }
        if (const FailedCudaCall* failed = call_with(process, text.code)) {
            told.call = failed->name;
        }
        if (const auto version = text.values.find("driver_version"); version != text.values.end()) {
            told.driver_version = std::stoull(version->second);
        }
        told.time_ns = exception.time_ns;
        told.python = exception.python;
        return told;
    }
    return std::nullopt;
}

bool names(const PythonException& exception, const FailedCudaCall& call) {
    return exception.message.find(call.name) != std::string::npos ||
           (!call.text.empty() && exception.message.find(call.text) != std::string::npos);
}

// A program that had the runtime put an error into words, and ended: what it wrote is not seen.
std::optional<Told> told_by_runtime(const Process& process) {
    if (process.runtime_errors.empty() || had_other_words(process)) {
        return std::nullopt;
    }
    const RuntimeError& last = process.runtime_errors.back();
    if (!is_just_before_the_end(process, last.time_ns)) {
        return std::nullopt;
    }
    Told told;
    told.code = static_cast<int>(last.error);
    told.error = fmt::format("{} (asked of {} by {})", last.text,
                             last.library.substr(last.library.rfind('/') + 1), last.caller);
    if (const FailedCudaCall* failed = call_with(process, told.code)) {
        told.call = failed->name;
    }
    told.time_ns = last.time_ns;
    told.tid = last.tid;
    told.python = last.python;
    told.inferred = say("the program asked for the words of this error, and ended just after it");
    return told;
}

}  // namespace

bool is_just_before_the_end(const Process& process, std::uint64_t time_ns) {
    constexpr std::uint64_t kJustBefore = 10'000'000'000;  // ns
    if (process.end_time_ns != 0) {
        return process.end_time_ns - time_ns < kJustBefore;
    }
    // Killed, nobody knows when: whoever launched kernels or made communicators after it went on.
    // NCCL itself looks for kernels that it may not have as it starts (209, measured on an H200).
    const auto is_later = [&](const auto& done) { return done.time_ns > time_ns; };
    return std::none_of(process.launches.begin(), process.launches.end(), is_later) &&
           std::none_of(process.nccl_calls.begin(), process.nccl_calls.end(),
                        [&](const NcclCall& call) { return call.result == 0 && is_later(call); });
}

const FailedCudaCall* call_with(const Process& process, int code) {
    for (auto call = process.cuda_failures.rbegin(); call != process.cuda_failures.rend(); ++call) {
        if (call->error == static_cast<std::uint64_t>(code)) {
            return &*call;
        }
    }
    return nullptr;
}

Told told_by_call(const FailedCudaCall& call) {
    const CudaError* known = cuda_error(static_cast<int>(call.error));
    Told told;
    told.code = static_cast<int>(call.error);
    told.error = say("{}: {}{}", call.name, call.error,
                     !call.text.empty() ? " " + call.text
                     : known != nullptr ? " " + known->text
                                        : "");
    told.call = call.name;
    told.time_ns = call.time_ns;
    told.tid = call.tid;
    told.python = call.python;
    return told;
}

bool had_other_words(const Process& process) {
    return !process.exceptions.empty() || (is_python(process) && process.end == EndHow::exit);
}

std::optional<Told> told_of(const Process& process) {
    for (std::size_t i = 0; i < process.exceptions.size(); ++i) {
        if (auto told = told_by(process, process.exceptions[i])) {
            if (i != 0) {
                told->inferred =
                    say("another exception was shown in the end, which came from this one");
            }
            return told;
        }
    }
    if (auto told = told_by_runtime(process)) {
        return told;
    }
    if (process.cuda_failures.empty()) {
        return std::nullopt;
    }
    const FailedCudaCall& last = process.cuda_failures.back();
    if (!process.exceptions.empty() && names(process.exceptions.front(), last)) {
        Told told = told_by_call(last);
        told.error = process.exceptions.front().type + ": " + process.exceptions.front().message;
        return told;
    }
    if (had_other_words(process) || !is_just_before_the_end(process, last.time_ns)) {
        return std::nullopt;
    }
    Told told = told_by_call(last);
    told.inferred = say("it was the last call of the driver, and the process ended just after it");
    return told;
}

}  // namespace cudiag
