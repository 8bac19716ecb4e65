// Format: records as TensorFlow's record_writer.h (length, its checksum, data, its checksum), each
// an Event of tensorboard/compat/proto/event.proto with a Summary of simple values.
#include "present/tensorboard.h"

#include <fmt/core.h>

#include <array>
#include <protozero/pbf_writer.hpp>

#include "present/profile_text.h"

namespace cudiag {
namespace {

using protozero::pbf_writer;

namespace event {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
}

namespace summary {
constexpr int kValue = 1, kTag = 1, kSimpleValue = 2;
}

constexpr double kNano = 1e9;
constexpr double kMilli = 1e6;

std::array<std::uint32_t, 256> make_table() {
    constexpr std::uint32_t kCastagnoli = 0x82f63b78;  // reflected
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < table.size(); ++i) {
        std::uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) {
            value = (value >> 1) ^ ((value & 1) != 0 ? kCastagnoli : 0);
        }
        table[i] = value;
    }
    return table;
}

// CRC-32C, masked as the format wants it (a checksum of data that holds checksums). zlib has only
// the other CRC-32.
std::uint32_t masked_checksum(const std::string& bytes) {
    static const std::array<std::uint32_t, 256> table = make_table();
    std::uint32_t value = 0xffffffff;
    for (const char byte : bytes) {
        value = table[(value ^ static_cast<unsigned char>(byte)) & 0xff] ^ (value >> 8);
    }
    value = ~value;
    constexpr std::uint32_t kMask = 0xa282ead8;
    return ((value >> 15) | (value << 17)) + kMask;
}

template <typename Number>
std::string little_endian(Number number) {
    std::string bytes;
    for (std::size_t i = 0; i < sizeof number; ++i) {
        bytes += static_cast<char>(static_cast<unsigned char>(number >> (8 * i)));
    }
    return bytes;
}

std::string record(const std::string& data) {
    const std::string length = little_endian(std::uint64_t{data.size()});
    return length + little_endian(masked_checksum(length)) + data +
           little_endian(masked_checksum(data));
}

void add_value(pbf_writer& of_event, const std::string& tag, double value) {
    pbf_writer of_summary{of_event, summary::kValue};
    of_summary.add_string(summary::kTag, tag);
    of_summary.add_float(summary::kSimpleValue, static_cast<float>(value));
}

std::string event_of(const OptimizerStep& step, const std::string& prefix) {
    std::string data;
    pbf_writer writer{data};
    writer.add_double(event::kWallTime, static_cast<double>(step.begin) / kNano);
    writer.add_int64(event::kStep, static_cast<std::int64_t>(step.number));
    {
        pbf_writer values{writer, event::kSummary};
        add_value(values, prefix + "host_ms", static_cast<double>(step.end - step.begin) / kMilli);
        if (step.profiled && step.operations != 0) {
            add_value(values, prefix + "device_busy_ms",
                      static_cast<double>(step.device_busy) / kMilli);
            add_value(values, prefix + "device_idle_ms", static_cast<double>(step.gaps) / kMilli);
        }
        if (step.launches) {
            add_value(values, prefix + "launches", static_cast<double>(*step.launches));
        }
    }
    return record(data);
}

std::string version_event(double wall_time) {
    std::string data;
    pbf_writer writer{data};
    writer.add_double(event::kWallTime, wall_time);
    writer.add_string(event::kFileVersion, "brain.Event:2");
    return record(data);
}

// "AdamW/", "1: AdamW/" of the second optimizer, "process 12/AdamW/" where there are more.
std::string prefix_of(const std::vector<Profile>& profiles, const Profile& profile,
                      std::size_t optimizer) {
    std::string prefix = profiles.size() > 1 ? fmt::format("process {}/", profile.pid) : "";
    prefix += profile.optimizers.size() > 1 ? fmt::format("{}: ", optimizer) : "";
    return prefix + profile.optimizers[optimizer].kind + "/";
}

}  // namespace

std::string tensorboard_events(const std::vector<Profile>& profiles) {
    std::string bytes =
        version_event(profiles.empty() ? 0 : static_cast<double>(profiles.front().begin) / kNano);
    for (const Profile& profile : profiles) {
        for (const OptimizerStep& step : profile.steps) {
            bytes += event_of(step, prefix_of(profiles, profile, step.optimizer));
        }
    }
    return bytes;
}

std::string tensorboard_file_name(std::int64_t seconds, const std::string& host) {
    return fmt::format("events.out.tfevents.{:010}.{}.cudiag", seconds, host);
}

}  // namespace cudiag
