#include "diagnose/optimizer/recorded.h"

#include <algorithm>
#include <cstring>

namespace cudiag {
namespace {

std::vector<std::string> split(std::string_view text, char at) {
    std::vector<std::string> parts;
    std::size_t begin = 0;
    for (std::size_t end = text.find(at); end != std::string_view::npos;
         end = text.find(at, begin)) {
        parts.emplace_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    parts.emplace_back(text.substr(begin));
    return parts;
}

// As many whole structures as the bytes hold.
template <class T>
void append_all(std::string_view bytes, std::vector<T>& to) {
    for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
        T value;
        std::memcpy(&value, bytes.data() + at, sizeof value);
        to.push_back(value);
    }
}

void note_window(const EntryRead& entry, RecordedProfile& profile) {
    if (entry.number(Field::status).value_or(0) == 1) {
        RecordedWindow window;
        window.begin = entry.realtime_ns;
        window.launches_before = entry.number(Field::count).value_or(0);
        window.cupti = entry.text(Field::path);
        window.cupti_version = entry.number(Field::cupti_version).value_or(0);
        profile.windows.push_back(std::move(window));
    } else if (!profile.windows.empty()) {
        RecordedWindow& window = profile.windows.back();
        window.end = entry.realtime_ns;
        window.ended = true;
        window.launches_after = entry.number(Field::count).value_or(0);
        window.not_kept = entry.number(Field::not_kept).value_or(0);
        window.spent = entry.number(Field::spent).value_or(0);
        window.dropped = entry.number(Field::dropped);
        window.shared = entry.number(Field::shared).value_or(0) == 1;
    }
}

// Names are numbered as they come; a number that a damaged file makes up is not believed.
void note_name(const EntryRead& entry, RecordedProfile& profile) {
    constexpr std::uint64_t kMost = 1 << 16;
    const std::uint64_t index = entry.number(Field::index).value_or(kMost);
    if (index < kMost) {
        profile.names.resize(std::max<std::size_t>(profile.names.size(), index + 1));
        profile.names[index] = entry.text(Field::name);
    }
}

// Times are CUPTI's nanoseconds, or ticks if a client asked CUPTI for that.
void settle_times(const Recording& recording, RecordedProfile& profile) {
    constexpr std::uint64_t kMinute = 60'000'000'000;
    const Header& header = recording.header;
    std::uint64_t last = std::max(header.last_realtime_ns, header.end_realtime_ns);
    for (const RecordedWindow& window : profile.windows) {
        last = std::max(last, window.end);
    }
    std::vector<DeviceRecord> kept;
    kept.reserve(profile.device.size());
    for (DeviceRecord record : profile.device) {
        for (std::uint64_t* time : {&record.begin, &record.end}) {
            *time = *time != 0 && *time < kFirstTime ? time_of_ticks(header, *time) : *time;
        }
        const bool in_range = record.begin <= record.end &&
                              record.begin + kMinute >= header.open_realtime_ns &&
                              record.end <= last + kMinute;
        if (in_range) {
            kept.push_back(record);
        } else {
            ++profile.out_of_range;
            if (record.kind == static_cast<std::uint16_t>(DeviceKind::kernel)) {
                profile.untimed.push_back(record.correlation);
            }
        }
    }
    std::stable_sort(kept.begin(), kept.end(), [](const DeviceRecord& a, const DeviceRecord& b) {
        return a.begin < b.begin;
    });
    profile.device = std::move(kept);
}

}  // namespace

OptimizerText::OptimizerText(std::string_view text) {
    for (const std::string& line : split(text, '\n')) {
        lines_.push_back(split(line, '\t'));
    }
}

std::string OptimizerText::first(std::string_view key) const {
    for (const auto& line : lines_) {
        if (line.size() > 1 && line.front() == key) {
            return line[1];
        }
    }
    return {};
}

std::vector<std::vector<std::string>> OptimizerText::all(std::string_view key) const {
    std::vector<std::vector<std::string>> found;
    for (const auto& line : lines_) {
        if (!line.empty() && line.front() == key) {
            found.emplace_back(line.begin() + 1, line.end());
        }
    }
    return found;
}

RecordedProfile recorded_profile_of(const Recording& recording) {
    RecordedProfile profile;
    profile.pid = recording.header.pid;
    profile.path = recording.path;
    profile.lost = recording.lost;
    for (const EntryRead& entry : recording.entries) {
        switch (entry.kind) {
            case EntryKind::profile:
                profile.mode = entry.text(Field::name);
                break;
            case EntryKind::profile_window:
                note_window(entry, profile);
                break;
            case EntryKind::profile_lacks:
                profile.lacks.push_back({.text = std::string{entry.text(Field::text)},
                                         .call = std::string{entry.text(Field::name)},
                                         .error = entry.number(Field::error).value_or(0),
                                         .cupti = std::string{entry.text(Field::path)}});
                break;
            case EntryKind::profile_client:
                profile.clients.push_back({.call = std::string{entry.text(Field::name)},
                                           .module = std::string{entry.text(Field::caller)},
                                           .offset = entry.number(Field::caller_offset).value_or(0),
                                           .error = entry.number(Field::error).value_or(0),
                                           .time_ns = entry.realtime_ns});
                break;
            case EntryKind::profile_device:
                profile.devices.push_back({.ordinal = static_cast<std::uint32_t>(
                                               entry.number(Field::device_ordinal).value_or(0)),
                                           .name = std::string{entry.text(Field::name)},
                                           .uuid = std::string{entry.text(Field::value)},
                                           .driver = std::string{entry.text(Field::text)}});
                break;
            case EntryKind::profile_name:
                note_name(entry, profile);
                break;
            case EntryKind::device_records:
                append_all(entry.text(Field::records), profile.device);
                break;
            case EntryKind::optimizer:
                profile.optimizers.emplace(entry.number(Field::index).value_or(0),
                                           OptimizerText{entry.text(Field::text)});
                break;
            case EntryKind::optimizer_step:
                append_all(entry.text(Field::records), profile.steps);
                break;
            default:
                break;
        }
    }
    settle_times(recording, profile);
    return profile;
}

}  // namespace cudiag
