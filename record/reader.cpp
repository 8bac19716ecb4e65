#include "record/reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

namespace cudiag {
namespace {

// Far above what any writer makes: a file that claims more would only cost memory.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

std::uint64_t size_of(const struct stat& status) {
    return static_cast<std::uint64_t>(status.st_size);
}

// Reads on behind `bytes` until it holds `size` or the file ends; 0 or errno.
int read_up_to(int file, std::uint64_t size, std::vector<std::byte>& bytes) {
    std::size_t have = bytes.size();
    bytes.resize(size);
    int error = 0;
    while (have < bytes.size()) {
        const ssize_t got = read(file, bytes.data() + have, bytes.size() - have);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            error = got < 0 ? errno : 0;
            break;
        }
        have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
    return error;
}

template <class T>
bool load(std::span<const std::byte> bytes, std::uint64_t offset, T& to) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) {
        return false;
    }
    std::memcpy(&to, bytes.data() + offset, sizeof(T));
    return true;
}

constexpr const char* kContradiction = "its header contradicts itself";

std::string check_header(const Header& header, std::size_t size) {
    if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) {
        return "not a cudiag recording";
    }
    if (header.byte_order != kByteOrder) {
        return "written by a machine of another byte order";
    }
    if (header.version == 0) {
        return "its header is damaged: there is no format 0";
    }
    if (header.version > kFormatVersion) {
        return "format " + std::to_string(header.version) + " is newer than this cudiag reads (" +
               std::to_string(kFormatVersion) + ")";
    }
    if (header.log_offset < kHeaderBytes || header.log_offset > size) {
        return "its log begins outside the file";
    }
    return {};
}

std::uint64_t ring_bytes(const Header& header) {
    return sizeof(RingHead) + std::uint64_t{header.ring_records} * sizeof(HotRecord);
}

// What is wrong with a file whose header is one of ours: "" if nothing.
std::string damage(const Header& header, std::size_t size) {
    if (header.file_bytes > size) {
        return "the file is cut at " + std::to_string(size) + " of " +
               std::to_string(header.file_bytes) + " bytes";
    }
    std::uint64_t end = 0;
    const bool adds_up = (header.ring_count == 0 || header.ring_records > 0) &&
                         header.rings_offset == header.log_offset + header.log_bytes &&
                         !__builtin_mul_overflow(header.ring_count, ring_bytes(header), &end) &&
                         !__builtin_add_overflow(end, header.rings_offset, &end) &&
                         end == header.file_bytes && header.log_tail <= header.log_bytes;
    return adds_up ? "" : kContradiction;
}

std::vector<FieldRead> read_fields(std::span<const std::byte> bytes, bool& whole) {
    std::vector<FieldRead> fields;
    std::uint64_t at = 0;
    FieldHead head{};
    whole = true;
    while (at < bytes.size()) {
        if (!load(bytes, at, head) || head.bytes > bytes.size() - at - sizeof head) {
            whole = false;
            break;
        }
        at += sizeof head;
        FieldRead field;
        field.field = static_cast<Field>(head.field);
        field.text.assign(reinterpret_cast<const char*>(bytes.data() + at), head.bytes);
        if (head.bytes == sizeof field.number) {
            std::memcpy(&field.number, field.text.data(), sizeof field.number);
        }
        fields.push_back(std::move(field));
        at += (std::uint64_t{head.bytes} + 7) & ~std::uint64_t{7};
    }
    return fields;
}

bool believable(const EntryHead& head, std::uint64_t room) {
    return head.bytes >= sizeof(EntryHead) && head.bytes % 8 == 0 && head.bytes <= room;
}

// Entries are read up to the first zeros behind the tail, not up to the tail: the header may have
// been copied before the log, or be damaged, and an entry vouches for itself.
void read_log(std::span<const std::byte> log, Recording& recording) {
    Losses& lost = recording.lost;
    const std::uint64_t tail = std::min<std::uint64_t>(recording.header.log_tail, log.size());
    std::uint64_t at = 0;
    bool in_zeros = false;
    EntryHead head{};
    while (load(log, at, head)) {
        if (head.commit == 0 && head.bytes == 0) {
            // Handed out and never begun; where its zeros end, the next entry begins.
            if (at >= tail) {
                break;
            }
            lost.torn_entries += in_zeros ? 0 : 1;
            in_zeros = true;
            at += 8;
            continue;
        }
        in_zeros = false;
        if (!believable(head, log.size() - at)) {
            // Cut off or damaged: where the next entry would start is not known.
            ++lost.torn_entries;
            return;
        }
        EntryRead entry;
        bool whole = head.commit == (kCommitted ^ head.bytes);
        if (whole) {
            entry.kind = static_cast<EntryKind>(head.kind);
            entry.tid = head.tid;
            entry.realtime_ns = head.realtime_ns;
            entry.fields =
                read_fields(log.subspan(at + sizeof head, head.bytes - sizeof head), whole);
        }
        if (whole) {
            recording.entries.push_back(std::move(entry));
        } else {
            ++lost.torn_entries;
        }
        at += head.bytes;
    }
    if (at < tail && !in_zeros) {
        ++lost.torn_entries;  // the file ends inside a head
    }
}

std::uint32_t commit_of(std::uint64_t number) {
    return static_cast<std::uint32_t>(number & 0x7fffffffU) + 1;
}

bool is_undated(const HotRead& hot) {
    const auto kind = static_cast<HotKind>(hot.kind);
    return (kind == HotKind::launch || kind == HotKind::graph_launch) &&
           (hot.flags & kUndated) != 0;
}

void read_ring(std::span<const std::byte> bytes, std::uint32_t records, Recording& recording) {
    RingHead ring{};
    if (!load(bytes, 0, ring) || ring.tid == 0) {
        return;
    }
    // A thread that died between its last two stores left a whole record that `next` does not
    // count.
    HotRecord last{};
    if (load(bytes, sizeof ring + ring.next % records * sizeof last, last) &&
        last.commit == commit_of(ring.next)) {
        ++ring.next;
    }
    const std::uint64_t kept = std::min<std::uint64_t>(ring.next, records);
    recording.lost.overwritten += ring.next - kept;
    const std::size_t first = recording.hot.size();
    for (std::uint64_t i = 0; i < kept; ++i) {
        const std::uint64_t number = ring.next - kept + i;
        HotRecord record{};
        if (!load(bytes, sizeof ring + number % records * sizeof record, record) ||
            record.commit != commit_of(number)) {
            ++recording.lost.torn_records;
            continue;
        }
        HotRead hot;
        hot.tid = ring.tid;
        hot.kind = record.kind;
        hot.flags = record.flags;
        hot.ticks = record.ticks;
        hot.realtime_ns = time_of_ticks(recording.header, record.ticks);
        std::copy(std::begin(record.words), std::end(record.words), std::begin(hot.words));
        recording.hot.push_back(hot);
    }
    std::uint64_t latest = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t i = recording.hot.size(); i > first; --i) {
        HotRead& hot = recording.hot[i - 1];
        latest = is_undated(hot) ? latest : hot.ticks;
        hot.latest_ticks = latest;
    }
}

void read_rings(std::span<const std::byte> bytes, Recording& recording) {
    const Header& header = recording.header;
    const std::uint64_t each = ring_bytes(header);
    for (std::uint32_t i = 0; i < header.ring_count && header.ring_records > 0; ++i) {
        if (header.rings_offset > bytes.size() ||
            (bytes.size() - header.rings_offset) / each <= i) {
            if (recording.lost.damage.empty()) {
                recording.lost.damage = "the file ends inside its rings";
            }
            break;
        }
        read_ring(bytes.subspan(header.rings_offset + i * each, each), header.ring_records,
                  recording);
    }
    std::stable_sort(recording.hot.begin(), recording.hot.end(),
                     [](const HotRead& a, const HotRead& b) { return a.ticks < b.ticks; });
}

std::vector<ProgressSlot> slots_in(std::span<const std::byte> bytes, std::uint64_t offset) {
    std::vector<ProgressSlot> slots;
    ProgressSlot slot{};
    for (std::size_t i = 0; i < kProgressSlots && load(bytes, offset + i * sizeof slot, slot);
         ++i) {
        if (slot.launched != 0) {
            slots.push_back(slot);
        }
    }
    return slots;
}

void read_progress(std::span<const std::byte> bytes, Recording& recording) {
    const std::uint64_t offset = recording.header.progress_offset;
    if (offset >= kHeaderBytes && recording.header.log_offset >= offset + kProgressBytes) {
        recording.progress = slots_in(bytes, offset);
    }
}

// The size of the entry of a journal that begins these bytes, or where another begins inside it:
// its writer was killed or found no room in the middle of its write, and others appended behind.
std::uint64_t size_until_another(std::span<const std::byte> bytes, std::uint64_t size) {
    struct {
        std::uint32_t commit, bytes;
    } start{};

    static_assert(offsetof(EntryHead, commit) == 0 && offsetof(EntryHead, bytes) == 4);
    for (std::uint64_t at = sizeof start; at < size && load(bytes, at, start); ++at) {
        if (start.commit == (kCommitted ^ start.bytes) && start.bytes >= sizeof(EntryHead) &&
            start.bytes % 8 == 0) {
            return at;
        }
    }
    return size;
}

}  // namespace

std::uint64_t time_of_ticks(const Header& header, std::uint64_t ticks) {
    const std::uint64_t span = header.last_ticks - header.open_ticks;
    if (header.last_ticks <= header.open_ticks ||
        header.last_realtime_ns <= header.open_realtime_ns) {
        return header.open_realtime_ns;
    }
    const double rate = static_cast<double>(header.last_realtime_ns - header.open_realtime_ns) /
                        static_cast<double>(span);
    const auto since = static_cast<std::int64_t>(ticks - header.open_ticks);
    const double offset = static_cast<double>(since) * rate;
    constexpr double kYear = 3.2e16;
    if (offset < -kYear || offset > kYear) {
        return header.open_realtime_ns;
    }
    return header.open_realtime_ns + static_cast<std::uint64_t>(static_cast<std::int64_t>(offset));
}

std::string_view EntryRead::text(Field field) const {
    for (const FieldRead& candidate : fields) {
        if (candidate.field == field) {
            return candidate.text;
        }
    }
    return {};
}

std::optional<std::uint64_t> EntryRead::number(Field field) const {
    for (const FieldRead& candidate : fields) {
        if (candidate.field == field && candidate.text.size() == sizeof candidate.number) {
            return candidate.number;
        }
    }
    return std::nullopt;
}

ReadResult parse_recording(std::span<const std::byte> bytes) {
    ReadResult result;
    Header header{};
    if (!load(bytes, 0, header)) {
        result.error.why =
            bytes.empty() ? "the file is empty" : "not a cudiag recording: too short";
        return result;
    }
    result.error.why = check_header(header, bytes.size());
    if (!result.error.why.empty()) {
        return result;
    }
    Recording recording;
    recording.header = header;
    recording.lost.dropped_entries = header.log_dropped;
    recording.lost.refused_threads = header.rings_refused;
    recording.lost.damage = damage(header, bytes.size());
    const std::uint64_t log_bytes =
        std::min<std::uint64_t>(header.log_bytes, bytes.size() - header.log_offset);
    read_log(bytes.subspan(header.log_offset, log_bytes), recording);
    // Of rings only the header tells where they are.
    if (recording.lost.damage != kContradiction) {
        read_rings(bytes, recording);
    }
    read_progress(bytes, recording);
    result.recording = std::move(recording);
    return result;
}

Recording parse_journal(std::span<const std::byte> bytes) {
    Recording recording;
    std::uint64_t at = 0;
    bool in_damage = false;
    EntryHead head{};
    while (load(bytes, at, head)) {
        const bool committed =
            head.commit == (kCommitted ^ head.bytes) && believable(head, bytes.size() - at);
        if (!committed) {
            // Where the next entry begins is not known, but an entry vouches for itself.
            recording.lost.torn_entries += in_damage ? 0 : 1;
            in_damage = true;
            ++at;
            continue;
        }
        in_damage = false;
        const std::uint64_t size = size_until_another(bytes.subspan(at), head.bytes);
        bool whole = size == head.bytes;
        EntryRead entry{.kind = static_cast<EntryKind>(head.kind),
                        .tid = head.tid,
                        .realtime_ns = head.realtime_ns,
                        .fields = {}};
        if (whole) {
            entry.fields =
                read_fields(bytes.subspan(at + sizeof head, head.bytes - sizeof head), whole);
        }
        if (whole) {
            recording.entries.push_back(std::move(entry));
        } else {
            ++recording.lost.torn_entries;
        }
        at += size;
    }
    if (at < bytes.size() && !in_damage) {
        ++recording.lost.torn_entries;
    }
    return recording;
}

namespace {

// The whole of a regular file. The first bytes are shown to `looks_right` before the rest is read:
// what is none of ours may be of any size.
struct FileRead {
    std::vector<std::byte> bytes;
    std::string why;  // there is nothing to parse
    int error = 0;    // errno of what could not be read behind `bytes`
};

template <class LooksRight>
FileRead read_file(const std::string& path, LooksRight looks_right) {
    FileRead result;
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    struct stat status {};

    if (file < 0 || fstat(file, &status) != 0) {
        result.why = std::strerror(errno);
    } else if (!S_ISREG(status.st_mode)) {
        result.why = "not a file";
    } else {
        // Read, not mapped: the file may be truncated by somebody while we look.
        const std::uint64_t size = size_of(status);
        result.error = read_up_to(file, std::min<std::uint64_t>(size, kHeaderBytes), result.bytes);
        if (result.error == 0 && looks_right(std::span<const std::byte>{result.bytes}, size)) {
            if (size > kMostBytes) {
                result.why = "larger than any recording (" + std::to_string(size) + " bytes)";
            } else {
                result.error = read_up_to(file, size, result.bytes);
            }
        }
        if (result.error != 0 && result.bytes.empty()) {
            result.why = std::strerror(result.error);
        }
    }
    if (file >= 0) {
        (void)close(file);
    }
    return result;
}

void note_unread(const FileRead& file, Recording& recording) {
    if (file.error != 0) {
        recording.lost.damage = "cannot be read beyond byte " + std::to_string(file.bytes.size()) +
                                ": " + std::strerror(file.error);
    }
}

}  // namespace

ReadResult read_recording(const std::string& path) {
    const FileRead file = read_file(path, [](std::span<const std::byte> start, std::uint64_t size) {
        Header header{};
        return load(start, 0, header) && check_header(header, size).empty();
    });
    ReadResult result;
    if (!file.why.empty()) {
        result.error.why = file.why;
        return result;
    }
    result = parse_recording(file.bytes);
    if (result.recording) {
        result.recording->path = path;
        note_unread(file, *result.recording);
    }
    return result;
}

std::vector<ProgressSlot> read_marks(const std::string& path) {
    const FileRead file = read_file(path, [](std::span<const std::byte>, std::uint64_t size) {
        return size == kProgressBytes;
    });
    return file.bytes.size() == kProgressBytes ? slots_in(file.bytes, 0)
                                               : std::vector<ProgressSlot>{};
}

ReadResult read_journal(const std::string& path) {
    const FileRead file =
        read_file(path, [](std::span<const std::byte>, std::uint64_t) { return true; });
    ReadResult result;
    if (!file.why.empty()) {
        result.error.why = file.why;
        return result;
    }
    result.recording = parse_journal(file.bytes);
    result.recording->path = path;
    note_unread(file, *result.recording);
    return result;
}

}  // namespace cudiag
