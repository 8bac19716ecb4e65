// Field numbers: perfetto's protos/perfetto/trace/trace_packet.proto, track_event/*.proto (v54),
// which only ever add to them. tests/scenario/optimizer reads the file with perfetto's own package.
#include "present/perfetto.h"

#include <fmt/core.h>

#include <map>
#include <protozero/pbf_writer.hpp>
#include <utility>

#include "present/profile_text.h"

namespace cudiag {
namespace {

using protozero::pbf_writer;

namespace trace {
constexpr int kPacket = 1;
}

namespace packet {
constexpr int kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11,
              kSequenceFlags = 13, kClockId = 58, kTrackDescriptor = 60, kFirstPacket = 87;
}

namespace snapshot {
constexpr int kClock = 1, kPrimaryClock = 2, kClockId = 1, kClockTime = 2;
}

namespace descriptor {
constexpr int kUuid = 1, kName = 2, kProcess = 3, kParent = 5, kCounter = 8;
constexpr int kProcessPid = 1, kProcessName = 6;
constexpr int kUnitName = 6;
}  // namespace descriptor

namespace event {
constexpr int kAnnotation = 4, kType = 9, kTrack = 11, kCategory = 22, kName = 23, kDouble = 44;
constexpr int kSliceBegin = 1, kSliceEnd = 2, kCounterValue = 4;
constexpr int kAnnotationUint = 3, kAnnotationName = 10;
}  // namespace event

constexpr std::uint32_t kSequence = 1;
constexpr std::uint32_t kStateCleared = 1;   // SEQ_INCREMENTAL_STATE_CLEARED
constexpr std::uint32_t kRealtimeClock = 1;  // BUILTIN_CLOCK_REALTIME
constexpr double kMilli = 1e6;

struct Annotation {
    const char* name;
    std::uint64_t value;
};

class Writer {
  public:
    // Has times taken as those of the wall clock; to be called first.
    void clock(std::uint64_t time) {
        add_packet([&](pbf_writer& of_packet) {
            pbf_writer writer{of_packet, packet::kClockSnapshot};
            {
                pbf_writer about{writer, snapshot::kClock};
                about.add_uint32(snapshot::kClockId, kRealtimeClock);
                about.add_uint64(snapshot::kClockTime, time);
            }
            writer.add_enum(snapshot::kPrimaryClock, static_cast<std::int32_t>(kRealtimeClock));
        });
    }

    std::uint64_t process(std::int32_t pid) {
        const std::uint64_t track = ++tracks_;
        add_descriptor(track, 0, "", [&](pbf_writer& writer) {
            pbf_writer about{writer, descriptor::kProcess};
            about.add_int32(descriptor::kProcessPid, pid);
            about.add_string(descriptor::kProcessName, fmt::format("process {}", pid));
        });
        return track;
    }

    std::uint64_t track(std::uint64_t parent, const std::string& name) {
        const std::uint64_t track = ++tracks_;
        add_descriptor(track, parent, name, [](pbf_writer&) {});
        return track;
    }

    std::uint64_t counter(std::uint64_t parent, const std::string& name, const char* unit) {
        const std::uint64_t track = ++tracks_;
        add_descriptor(track, parent, name, [&](pbf_writer& writer) {
            pbf_writer about{writer, descriptor::kCounter};
            about.add_string(descriptor::kUnitName, unit);
        });
        return track;
    }

    void slice(std::uint64_t track, std::uint64_t begin, std::uint64_t end, const std::string& name,
               const char* category, const std::vector<Annotation>& annotations) {
        add_event(track, begin, event::kSliceBegin, [&](pbf_writer& writer) {
            writer.add_string(event::kName, name);
            writer.add_string(event::kCategory, category);
            for (const Annotation& annotation : annotations) {
                pbf_writer about{writer, event::kAnnotation};
                about.add_string(event::kAnnotationName, annotation.name);
                about.add_uint64(event::kAnnotationUint, annotation.value);
            }
        });
        add_event(track, end, event::kSliceEnd, [](pbf_writer&) {});
    }

    void count(std::uint64_t track, std::uint64_t time, double value) {
        add_event(track, time, event::kCounterValue,
                  [&](pbf_writer& writer) { writer.add_double(event::kDouble, value); });
    }

    std::string take() { return std::move(bytes_); }

  private:
    template <typename Fill>
    void add_packet(Fill fill) {
        pbf_writer file{bytes_};
        pbf_writer writer{file, trace::kPacket};
        writer.add_uint32(packet::kSequenceId, kSequence);
        if (first_) {
            writer.add_uint32(packet::kSequenceFlags, kStateCleared);
            writer.add_bool(packet::kFirstPacket, true);
            first_ = false;
        }
        fill(writer);
    }

    template <typename Fill>
    void add_descriptor(std::uint64_t track, std::uint64_t parent, const std::string& name,
                        Fill fill) {
        add_packet([&](pbf_writer& of_packet) {
            pbf_writer writer{of_packet, packet::kTrackDescriptor};
            writer.add_uint64(descriptor::kUuid, track);
            if (parent != 0) {
                writer.add_uint64(descriptor::kParent, parent);
            }
            if (!name.empty()) {
                writer.add_string(descriptor::kName, name);
            }
            fill(writer);
        });
    }

    template <typename Fill>
    void add_event(std::uint64_t track, std::uint64_t time, int type, Fill fill) {
        add_packet([&](pbf_writer& of_packet) {
            of_packet.add_uint64(packet::kTimestamp, time);
            of_packet.add_uint32(packet::kClockId, kRealtimeClock);
            pbf_writer writer{of_packet, packet::kTrackEvent};
            writer.add_uint64(event::kTrack, track);
            writer.add_enum(event::kType, type);
            fill(writer);
        });
    }

    std::string bytes_;
    std::uint64_t tracks_ = 0;
    bool first_ = true;
};

const char* category_of(DeviceOperation::Kind kind) {
    switch (kind) {
        case DeviceOperation::Kind::copy:
            return "copy";
        case DeviceOperation::Kind::fill:
            return "fill";
        default:
            return "kernel";
    }
}

std::vector<Annotation> annotations_of(const DeviceOperation& operation) {
    if (operation.kind == DeviceOperation::Kind::kernel) {
        return {{"blocks", operation.blocks}, {"threads", operation.threads}};
    }
    return {{"bytes", operation.bytes}};
}

void write_steps(Writer& writer, const Profile& profile, std::uint64_t process) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> tracks;  // host's steps, counter
    tracks.reserve(profile.optimizers.size());
    for (const Optimizer& optimizer : profile.optimizers) {
        tracks.emplace_back(
            writer.track(process, called(optimizer) + " step, host"),
            writer.counter(process, called(optimizer) + " step, device busy", "ms"));
    }
    for (const OptimizerStep& step : profile.steps) {
        const auto& [host, counter] = tracks[step.optimizer];
        std::vector<Annotation> annotations{{"number", step.number}};
        if (step.launches) {
            annotations.push_back({"launches", *step.launches});
        }
        writer.slice(host, step.begin, step.end, profile.optimizers[step.optimizer].kind + ".step",
                     "optimizer", annotations);
        if (step.profiled && step.operations != 0) {
            writer.count(counter, step.device_begin,
                         static_cast<double>(step.device_busy) / kMilli);
        }
    }
}

// Operations of one stream follow one another; those that overlap all the same (records of graphs)
// get a track of their own, since slices of a track must nest.
void write_operations(Writer& writer, const Profile& profile, std::uint64_t process) {
    struct Lane {
        std::uint64_t track;
        std::uint64_t end;
    };

    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Lane>> streams;
    for (const DeviceOperation& operation : profile.operations) {
        std::vector<Lane>& lanes = streams[{operation.device, operation.stream}];
        std::size_t at = 0;
        while (at < lanes.size() && lanes[at].end > operation.begin) {
            ++at;
        }
        if (at == lanes.size()) {
            lanes.push_back({writer.track(process, fmt::format("GPU {}, stream {}",
                                                               operation.device, operation.stream)),
                             0});
        }
        writer.slice(lanes[at].track, operation.begin, operation.end, profile.names[operation.name],
                     category_of(operation.kind), annotations_of(operation));
        lanes[at].end = operation.end;
    }
}

}  // namespace

std::string perfetto_trace(const std::vector<Profile>& profiles) {
    Writer writer;
    writer.clock(profiles.empty() ? 0 : profiles.front().begin);
    for (const Profile& profile : profiles) {
        const std::uint64_t process = writer.process(profile.pid);
        write_steps(writer, profile, process);
        write_operations(writer, profile, process);
    }
    return writer.take();
}

}  // namespace cudiag
