#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "diagnose/nccl/rules.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// The collective that a rank waited for, as torch's watchdog tells it.
struct Waited {
    std::string rank, collective, sequence, numel_in, numel_out;
};

std::string value_of(const TextValues& values, const char* key) {
    const auto found = values.find(key);
    return found == values.end() ? std::string{} : found->second;
}

Waited waited_of(const TextValues& values, const Process& process) {
    Waited waited{.rank = value_of(values, "rank"),
                  .collective = value_of(values, "collective"),
                  .sequence = value_of(values, "sequence"),
                  .numel_in = value_of(values, "numel_in"),
                  .numel_out = value_of(values, "numel_out")};
    if (waited.rank.empty()) {
        const auto rank = rank_of(process);
        waited.rank = rank ? std::to_string(*rank) : "";
    }
    if (waited.numel_in.empty()) {
        waited.numel_in = value_of(values, "shape");
    }
    return waited;
}

std::vector<std::pair<std::int32_t, Waited>> waited_elsewhere(const NcclCase& c) {
    std::vector<std::pair<std::int32_t, Waited>> others;
    for (const Process& process : c.facts.processes) {
        for (const PythonException& exception : process.exceptions) {
            bool told = false;
            for (const FoundText& text : nccl_texts_of(exception.message)) {
                if (process.pid != c.process.pid && value_of(text.values, "cause") == "hang") {
                    others.emplace_back(process.pid, waited_of(text.values, process));
                    told = true;
                    break;
                }
            }
            if (told) {
                break;
            }
        }
    }
    return others;
}

// Collectives to which each rank must bring as much as every other.
bool of_equal_sizes(const std::string& collective) {
    constexpr std::array kEqual{"ALLREDUCE",          "BROADCAST", "ALLGATHER",
                                "_ALLGATHER_BASE",    "REDUCE",    "_REDUCE_SCATTER_BASE",
                                "ALLREDUCE_COALESCED"};
    return std::find(kEqual.begin(), kEqual.end(), collective) != kEqual.end();
}

std::string call_text(const Waited& waited) {
    return say("{}{}{}", waited.collective.empty() ? say("a collective") : waited.collective,
               waited.sequence.empty() ? "" : say(" number {}", waited.sequence),
               waited.numel_in.empty() ? "" : say(" of {} elements", waited.numel_in));
}

// Nothing if the two made the same call, as far as their words tell.
std::string difference(const Waited& one, const Waited& other) {
    const bool sizes = of_equal_sizes(one.collective) &&
                       (one.numel_in != other.numel_in || one.numel_out != other.numel_out);
    if (one.sequence == other.sequence && one.collective == other.collective && !sizes) {
        return {};
    }
    return say("rank {} was in {}, rank {} in {}", one.rank.empty() ? "?" : one.rank,
               call_text(one), other.rank.empty() ? "?" : other.rank, call_text(other));
}

std::string seconds_of(const std::string& milliseconds) {
    std::uint64_t number = 0;
    std::from_chars(milliseconds.data(), milliseconds.data() + milliseconds.size(), number);
    return fmt::format("{:.0f} s", static_cast<double>(number) / 1000);
}

nlohmann::ordered_json json_of(std::int32_t pid, const Waited& waited) {
    return {{"pid", pid},
            {"rank", waited.rank},
            {"collective", waited.collective},
            {"sequence", waited.sequence},
            {"numel_in", waited.numel_in},
            {"numel_out", waited.numel_out}};
}

}  // namespace

std::optional<Finding> nccl_hang(const NcclCase& c) {
    if (c.cause->slug != "nccl-hang") {
        return std::nullopt;
    }
    const Waited here = waited_of(c.values, c.process);
    Finding finding = begin_finding(c);
    finding.title = say("{} waited {} in vain for the other ranks in {}",
                        here.rank.empty() ? say("a rank") : say("rank {}", here.rank),
                        seconds_of(c.value("waited_ms")), call_text(here));
    finding.evidence["collective"] = here.collective;
    finding.evidence["sequence"] = here.sequence.empty() ? say("not told") : here.sequence;
    finding.evidence["numel_in"] = here.numel_in.empty() ? say("not told") : here.numel_in;
    finding.evidence["numel_out"] = here.numel_out.empty() ? say("not told") : here.numel_out;
    finding.evidence["timeout_ms"] = c.value("timeout_ms");
    finding.evidence["waited_ms"] = c.value("waited_ms");
    auto waited = nlohmann::ordered_json::array({json_of(c.process.pid, here)});
    std::string first;
    for (const auto& [pid, other] : waited_elsewhere(c)) {
        waited.push_back(json_of(pid, other));
        if (first.empty()) {
            first = difference(here, other);
        }
    }
    finding.evidence["waited"] = std::move(waited);
    finding.evidence["first_difference"] = first.empty() ? say("none seen") : first;
    finding.evidence["processes_here"] = ranks_json(c);
    if (!first.empty()) {
        finding.title += say(": {}", first);
        finding.fixes.push_back(
            {say("let every rank make the same calls in the same order, and with equal sizes where "
                 "the "
                 "collective wants that (a last batch that is smaller on one rank is the usual "
                 "one); "
                 "torch names the first call that differs, where it is made, with"),
             "export TORCH_DISTRIBUTED_DEBUG=DETAIL", false});
    } else {
        finding.limits = say("which rank did not come, and why, is not known: no other rank's "
                             "words are recorded; ") +
                         finding.limits;
    }
    return finding;
}

}  // namespace cudiag
