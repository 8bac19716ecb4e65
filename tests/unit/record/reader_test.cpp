#include "record/reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <limits>

#include "record/hot.h"
#include "tests/unit/record/recording_file.h"
#include "tests/unit/record/sample.h"

namespace cudiag {
namespace {

using testing::kIdentity;
using testing::kLogBegin;
using testing::OpenRecording;
using testing::sample_bytes;
using testing::TemporaryDirectory;

Header header_of(const std::vector<std::byte>& bytes) {
    Header header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    return header;
}

std::vector<std::byte> with_header(std::vector<std::byte> bytes, const Header& header) {
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
}

// "" when there is a recording.
std::string refusal(const std::vector<std::byte>& bytes) {
    const ReadResult result = parse_recording(bytes);
    return result.recording ? "" : result.error.why;
}

TEST(Reader, GivesBackEveryFieldOfEveryKind) {
    constexpr std::array kTexts = {Field::path,   Field::name,        Field::value,
                                   Field::text,   Field::argument,    Field::working_directory,
                                   Field::caller, Field::python_file, Field::python_function,
                                   Field::type};
    constexpr std::array kNumbers = {Field::python_line,    Field::flags,   Field::caller_offset,
                                     Field::snapshot,       Field::index,   Field::base,
                                     Field::tls_bytes,      Field::pid,     Field::status,
                                     Field::link_namespace, Field::certain, Field::device,
                                     Field::inode,          Field::chain,   Field::root};
    constexpr std::array kKinds = {
        EntryKind::process,          EntryKind::variable,      EntryKind::module,
        EntryKind::snapshot,         EntryKind::dlopen_failed, EntryKind::dlsym_failed,
        EntryKind::python_exception, EntryKind::child_ended,   EntryKind::exec,
        EntryKind::given_up};
    OpenRecording recording(Capacity{});
    // Every length from 0 to 19 (padding), with NUL and bytes that are no UTF-8 in them.
    const std::string raw("\0\xff\xfe/\n\x80", 6);
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < 20; ++i) {
        texts.push_back((raw + raw + raw + raw).substr(0, i));
    }
    const std::uint64_t before = realtime_ns();
    for (std::size_t k = 0; k < kKinds.size(); ++k) {
        std::vector<FieldValue> fields;
        for (std::size_t i = 0; i < kTexts.size(); ++i) {
            const std::string& text = texts[(i + k) % texts.size()];
            fields.push_back(FieldValue::of(kTexts[i], text.data(), text.size()));
        }
        for (std::size_t i = 0; i < kNumbers.size(); ++i) {
            fields.push_back(FieldValue::of(kNumbers[i], ~std::uint64_t{0} - i * k));
        }
        ASSERT_TRUE(recording.writer.append(kKinds[k], fields.data(), fields.size()));
    }
    const Recording read = recording.read();
    EXPECT_FALSE(read.lost.any()) << read.lost.damage;
    EXPECT_EQ(read.path, recording.path());
    ASSERT_EQ(read.entries.size(), kKinds.size());
    for (std::size_t k = 0; k < kKinds.size(); ++k) {
        const EntryRead& entry = read.entries[k];
        EXPECT_EQ(entry.kind, kKinds[k]);
        EXPECT_EQ(entry.tid, static_cast<std::uint32_t>(gettid()));
        EXPECT_GE(entry.realtime_ns, before);
        EXPECT_LE(entry.realtime_ns, realtime_ns());
        ASSERT_EQ(entry.fields.size(), kTexts.size() + kNumbers.size());
        for (std::size_t i = 0; i < kTexts.size(); ++i) {
            EXPECT_EQ(entry.fields[i].field, kTexts[i]);
            EXPECT_EQ(entry.text(kTexts[i]), texts[(i + k) % texts.size()]);
        }
        for (std::size_t i = 0; i < kNumbers.size(); ++i) {
            EXPECT_EQ(entry.fields[kTexts.size() + i].field, kNumbers[i]);
            EXPECT_EQ(entry.number(kNumbers[i]), ~std::uint64_t{0} - i * k);
        }
    }
}

TEST(Reader, KeepsARepeatedFieldInOrderAndAnswersTheFirst) {
    OpenRecording recording(Capacity{});
    const std::array fields = {FieldValue::of(Field::argument, "python3"),
                               FieldValue::of(Field::argument, "-m"),
                               FieldValue::of(Field::argument, "train")};
    ASSERT_TRUE(recording.writer.append(EntryKind::process, fields.data(), fields.size()));
    const Recording read = recording.read();
    ASSERT_EQ(read.entries.size(), 1U);
    ASSERT_EQ(read.entries[0].fields.size(), 3U);
    EXPECT_EQ(read.entries[0].fields[1].text, "-m");
    EXPECT_EQ(read.entries[0].fields[2].text, "train");
    EXPECT_EQ(read.entries[0].text(Field::argument), "python3");
    EXPECT_EQ(read.entries[0].text(Field::path), "");
    EXPECT_EQ(read.entries[0].number(Field::pid), std::nullopt);
}

TEST(Reader, KeepsKindsAndFieldsThatItDoesNotKnow) {
    OpenRecording recording(Capacity{});
    const FieldValue field = FieldValue::of(static_cast<Field>(9999), "later");
    ASSERT_TRUE(recording.writer.append(static_cast<EntryKind>(999), &field, 1));
    ASSERT_TRUE(recording.writer.append(EntryKind::snapshot, nullptr, 0));
    const Recording read = recording.read();
    ASSERT_EQ(read.entries.size(), 2U);
    EXPECT_EQ(static_cast<int>(read.entries[0].kind), 999);
    EXPECT_EQ(read.entries[0].text(static_cast<Field>(9999)), "later");
    EXPECT_EQ(read.entries[1].kind, EntryKind::snapshot);
    EXPECT_FALSE(read.lost.any());
}

TEST(Reader, TellsWhoWroteIt) {
    const OpenRecording recording(Capacity{});
    const Header header = recording.read().header;
    EXPECT_EQ(header.pid, kIdentity.pid);
    EXPECT_EQ(header.ppid, kIdentity.ppid);
    EXPECT_EQ(header.root_pid, kIdentity.root_pid);
    EXPECT_EQ(header.start_ticks, kIdentity.start_ticks);
    EXPECT_EQ(header.root_start_ticks, kIdentity.root_start_ticks);
    EXPECT_EQ(header.uid, geteuid());
    EXPECT_EQ(static_cast<EndHow>(header.end_how), EndHow::none);
}

TEST(Reader, PutsHotRecordsOfSeveralThreadsInOrderOfTime) {
    const ReadResult result = parse_recording(sample_bytes());
    ASSERT_TRUE(result.recording);
    const std::vector<HotRead>& hot = result.recording->hot;
    ASSERT_EQ(hot.size(), 7U);
    EXPECT_TRUE(std::is_sorted(hot.begin(), hot.end(), [](const HotRead& a, const HotRead& b) {
        return a.realtime_ns < b.realtime_ns;
    }));
    EXPECT_EQ(result.recording->lost.overwritten, 5U);
}

TEST(Reader, GivesAnUndatedLaunchTheTimesBetweenWhichItWas) {
    OpenRecording recording({4096, 1, 8});
    RingHead* ring = recording.writer.claim_ring();
    ASSERT_NE(ring, nullptr);
    constexpr auto kLaunch = static_cast<std::uint16_t>(HotKind::launch);
    constexpr auto kWait = static_cast<std::uint16_t>(HotKind::waited);
    const std::uint64_t words[6] = {};
    append_own_record(ring, 7, kLaunch, 0, 100, words);
    append_own_record(ring, 7, kLaunch, kUndated, 100, words);
    append_own_record(ring, 7, kLaunch, kUndated | kCapturing, 100, words);
    append_own_record(ring, 7, kWait, kUndated, 300, words);  // a flag of launches alone
    append_own_record(ring, 7, kLaunch, kUndated, 300, words);
    const Recording read = recording.read();
    std::vector<std::uint64_t> earliest, latest;
    for (const HotRead& hot : read.hot) {
        earliest.push_back(hot.ticks);
        latest.push_back(hot.latest_ticks);
    }
    EXPECT_EQ(earliest, (std::vector<std::uint64_t>{100, 100, 100, 300, 300}));
    constexpr std::uint64_t kEver = std::numeric_limits<std::uint64_t>::max();
    EXPECT_EQ(latest, (std::vector<std::uint64_t>{100, 300, 300, 300, kEver}));
}

TEST(Reader, StepsOverAnEntryThatWasNeverFinished) {
    std::vector<std::byte> bytes = sample_bytes();
    const std::vector<EntryRead> all = parse_recording(bytes).recording.value().entries;
    // The second entry begins behind the first; its commit is the first word.
    std::uint32_t first = 0;
    std::memcpy(&first, bytes.data() + kLogBegin + offsetof(EntryHead, bytes), sizeof first);
    std::memset(bytes.data() + kLogBegin + first, 0, sizeof(std::uint32_t));
    const Recording read = parse_recording(bytes).recording.value();
    EXPECT_EQ(read.lost.torn_entries, 1U);
    ASSERT_EQ(read.entries.size(), all.size() - 1);
    EXPECT_TRUE(testing::same(read.entries[0], all[0]));
    EXPECT_TRUE(testing::same(read.entries[1], all[2]));
}

TEST(Reader, StepsOverAnEntryThatWasNeverBegun) {
    std::vector<std::byte> bytes = sample_bytes();
    const std::vector<EntryRead> all = parse_recording(bytes).recording.value().entries;
    std::uint32_t first = 0;
    std::memcpy(&first, bytes.data() + kLogBegin + offsetof(EntryHead, bytes), sizeof first);
    std::memset(bytes.data() + kLogBegin, 0, first);
    const Recording read = parse_recording(bytes).recording.value();
    EXPECT_EQ(read.lost.torn_entries, 1U);
    ASSERT_EQ(read.entries.size(), all.size() - 1);
    EXPECT_TRUE(testing::same(read.entries[0], all[1]));
}

TEST(Reader, CallsAnEntryTornWhoseFieldsDoNotFitIt) {
    std::vector<std::byte> bytes = sample_bytes();
    const std::uint32_t beyond = 1U << 20;
    std::memcpy(bytes.data() + kLogBegin + sizeof(EntryHead) + offsetof(FieldHead, bytes), &beyond,
                sizeof beyond);
    const Recording read = parse_recording(bytes).recording.value();
    EXPECT_EQ(read.lost.torn_entries, 1U);
    EXPECT_EQ(read.entries.size(), 5U);
}

TEST(Reader, CountsARecordThatWasBeingWritten) {
    std::vector<std::byte> bytes = sample_bytes();
    const std::uint64_t rings = header_of(bytes).rings_offset;
    std::memset(bytes.data() + rings + sizeof(RingHead), 0, sizeof(std::uint32_t));
    const Recording read = parse_recording(bytes).recording.value();
    EXPECT_EQ(read.lost.torn_records, 1U);
    EXPECT_EQ(read.hot.size(), 6U);
}

TEST(Reader, FindsTheRecordThatWasWholeButNotYetCounted) {
    std::vector<std::byte> bytes = sample_bytes();
    const std::uint64_t next_at = header_of(bytes).rings_offset + offsetof(RingHead, next);
    const std::uint64_t two = 2;
    std::memcpy(bytes.data() + next_at, &two, sizeof two);
    const Recording read = parse_recording(bytes).recording.value();
    EXPECT_EQ(read.hot.size(), 7U);
    EXPECT_FALSE(read.lost.any());
}

TEST(Reader, RefusesWhatIsNoRecordingAndSaysWhy) {
    EXPECT_EQ(refusal({}), "the file is empty");
    EXPECT_EQ(refusal(std::vector<std::byte>(100)), "not a cudiag recording: too short");
    EXPECT_EQ(refusal(std::vector<std::byte>(8192)), "not a cudiag recording");
}

TEST(Reader, RefusesFormatsAndByteOrdersThatItCannotRead) {
    const std::vector<std::byte> bytes = sample_bytes();
    Header header = header_of(bytes);
    header.version = kFormatVersion + 6;
    EXPECT_EQ(refusal(with_header(bytes, header)), "format 7 is newer than this cudiag reads (1)");
    header.version = 0;
    EXPECT_EQ(refusal(with_header(bytes, header)), "its header is damaged: there is no format 0");
    header = header_of(bytes);
    header.byte_order = __builtin_bswap32(kByteOrder);
    EXPECT_EQ(refusal(with_header(bytes, header)), "written by a machine of another byte order");
}

TEST(Reader, ReportsAHeaderWhosePartsDoNotAddUp) {
    const std::vector<std::byte> bytes = sample_bytes();
    Header header = header_of(bytes);
    header.rings_offset += 64;
    EXPECT_EQ(parse_recording(with_header(bytes, header)).recording.value().lost.damage,
              "its header contradicts itself");
    header = header_of(bytes);
    header.ring_count = ~0U;
    header.ring_records = ~0U;
    EXPECT_EQ(parse_recording(with_header(bytes, header)).recording.value().lost.damage,
              "its header contradicts itself");
}

TEST(ReadRecording, SaysWhatItFoundInsteadOfARecording) {
    const TemporaryDirectory directory;
    const auto why = [&](const std::string& name) {
        const ReadResult result = read_recording(directory.file(name));
        EXPECT_FALSE(result.recording);
        return result.error.why;
    };
    testing::write_file(directory.file("empty"), {});
    testing::write_file(directory.file("foreign"), std::vector<std::byte>(8192, std::byte{'x'}));
    ASSERT_EQ(mkfifo(directory.file("fifo").c_str(), 0600), 0);
    EXPECT_EQ(why("absent"), "No such file or directory");
    EXPECT_EQ(why("empty"), "the file is empty");
    EXPECT_EQ(why("foreign"), "not a cudiag recording");
    EXPECT_EQ(why("."), "not a file");
    EXPECT_EQ(why("fifo"), "not a file");
}

TEST(ReadRecording, SpendsNoMemoryOnHugeFiles) {
    const TemporaryDirectory directory;
    constexpr off_t kTerabyte = off_t{1} << 40;
    testing::write_file(directory.file("foreign"), std::vector<std::byte>(8192));
    testing::write_file(directory.file("grown"), sample_bytes());
    if (truncate(directory.file("foreign").c_str(), kTerabyte) != 0 ||
        truncate(directory.file("grown").c_str(), kTerabyte) != 0) {
        GTEST_SKIP() << "no sparse files of 1 TB here: " << std::strerror(errno);
    }
    EXPECT_EQ(read_recording(directory.file("foreign")).error.why, "not a cudiag recording");
    EXPECT_EQ(read_recording(directory.file("grown")).error.why,
              "larger than any recording (1099511627776 bytes)");
}

}  // namespace
}  // namespace cudiag
