#include <algorithm>

#include "diagnose/optimizer/words.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// CUptiResult (cupti_result.h). 14 is what CUPTI 13.5 gives a client of the older kind while one of
// the newer kind records (measured: docs/gpu-results.md).
constexpr std::uint64_t kNotCompatible = 14;
constexpr std::uint64_t kMultipleSubscribers = 39;

bool says_taken(std::uint64_t error) {
    return error == kMultipleSubscribers || error == kNotCompatible;
}

std::string base_name(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

nlohmann::ordered_json clients_json(const RecordedProfile& recorded) {
    auto list = nlohmann::ordered_json::array();
    for (const CuptiClient& client : recorded.clients) {
        list.push_back({{"module", client.module.empty() ? "unknown" : client.module},
                        {"call", client.call},
                        {"result", client.error}});
    }
    return list;
}

}  // namespace

std::optional<Finding> profile_seat_taken(const ProfileCase& c) {
    const Completeness& complete = c.profile.completeness;
    const auto& lacks = c.recorded.lacks;
    const auto refused = std::find_if(lacks.begin(), lacks.end(), [](const RecordedLack& lack) {
        return says_taken(lack.error) && lack.call != "steps";
    });
    // Not a refusal: whoever sets CUPTI's buffers behind our back gets all records, and we get
    // none.
    constexpr std::uint64_t kEnough = 10;
    const bool silenced =
        complete.device_timeline && complete.records == 0 && complete.launches >= kEnough;
    if (refused == lacks.end() && !silenced) {
        return std::nullopt;
    }
    const auto client = std::find_if(c.recorded.clients.begin(), c.recorded.clients.end(),
                                     [](const CuptiClient& each) { return each.error == 0; });
    const std::string who = client == c.recorded.clients.end() || client->module.empty()
                                ? say("another client in this process")
                                : base_name(client->module);
    Finding finding = finding_of(c, "profile-seat-taken", Severity::warning);
    finding.confidence =
        client == c.recorded.clients.end() ? Confidence::likely : Confidence::certain;
    finding.title = silenced
                        ? say("{} launches were made and CUPTI gave no record of any: {} has it",
                              complete.launches, who)
                        : say("CUPTI refused to record: {} has it", who);
    finding.evidence["clients"] = clients_json(c.recorded);
    finding.evidence["call"] = refused == lacks.end() ? "" : refused->call;
    finding.evidence["error"] = refused == lacks.end() ? "" : refused->text;
    finding.evidence["cupti"] = refused == lacks.end() ? complete.cupti : refused->cupti;
    finding.evidence["launches"] = complete.launches;
    finding.evidence["records"] = complete.device_timeline
                                      ? nlohmann::ordered_json(complete.records)
                                      : nlohmann::ordered_json("unknown");
    finding.fixes.push_back(
        {.text =
             say("run once without the other profiler (torch.profiler itself is no obstacle: both "
                 "get all records)"),
         .command = ""});
    finding.limits = say(
        "whether the other client is profiling now or only holds CUPTI; a client that was linked "
        "with CUPTI before the program started is not seen taking it");
    return finding;
}

}  // namespace cudiag
