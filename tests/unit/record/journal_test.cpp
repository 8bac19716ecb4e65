#include "record/journal.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <map>

#include "tests/unit/record/recording_file.h"
#include "tests/unit/record/sample.h"

namespace cudiag {
namespace {

using testing::contents;
using testing::is_part_of;
using testing::kCannotRunHere;
using testing::status_of_child;
using testing::TemporaryDirectory;

// A journal being written, as a step of a build has it open.
struct OpenJournal {
    OpenJournal() : file{open_again()} {}

    ~OpenJournal() { (void)close(file); }

    OpenJournal(const OpenJournal&) = delete;
    OpenJournal& operator=(const OpenJournal&) = delete;

    int open_again() const {
        return ::open(path().c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    }

    std::string path() const { return directory.file(kJournalName); }

    std::vector<std::byte> bytes() const { return contents(path()); }

    std::size_t size() const { return bytes().size(); }

    Recording read() const {
        ReadResult result = read_journal(path());
        EXPECT_TRUE(result.recording) << result.error.why;
        return result.recording.value_or(Recording{});
    }

    TemporaryDirectory directory;
    int file;
};

bool append_text(int file, std::uint64_t pid, const std::string& text) {
    const std::array fields = {FieldValue::of(Field::pid, pid),
                               FieldValue::of(Field::text, text.data(), text.size())};
    return append_to_journal(file, EntryKind::step_started, fields.data(), fields.size());
}

// Four entries of three kinds, with fields of every padding.
std::vector<std::byte> small_journal() {
    const OpenJournal journal;
    EXPECT_TRUE(append_text(journal.file, 100, "/usr/bin/ninja"));
    EXPECT_TRUE(append_text(journal.file, 101, "c++"));
    const std::array opens = {FieldValue::of(Field::pid, std::uint64_t{101}),
                              FieldValue::of(Field::opens, "-/a/x.h\0+/b/x.h\0", 16)};
    EXPECT_TRUE(append_to_journal(journal.file, EntryKind::step_ended, opens.data(), opens.size()));
    EXPECT_TRUE(append_to_journal(journal.file, EntryKind::lock_held, nullptr, 0));
    return journal.bytes();
}

EntryHead head_at(const std::vector<std::byte>& bytes, std::size_t at) {
    EntryHead head{};
    std::memcpy(&head, bytes.data() + at, sizeof head);
    return head;
}

// Where each entry of an undamaged journal begins.
std::vector<std::size_t> begins_of(const std::vector<std::byte>& bytes) {
    std::vector<std::size_t> begins;
    for (std::size_t at = 0; at < bytes.size(); at += head_at(bytes, at).bytes) {
        begins.push_back(at);
    }
    return begins;
}

std::vector<std::byte> joined(std::initializer_list<std::span<const std::byte>> pieces) {
    std::vector<std::byte> all;
    for (const auto piece : pieces) {
        all.insert(all.end(), piece.begin(), piece.end());
    }
    return all;
}

TEST(Journal, GivesBackEntriesInTheOrderOfAppending) {
    const OpenJournal journal;
    const std::uint64_t before = realtime_ns();
    ASSERT_TRUE(append_text(journal.file, 7, "first"));
    ASSERT_TRUE(append_text(journal.file, 8, std::string("\0\xff\n", 3)));
    ASSERT_TRUE(append_text(journal.file, 9, ""));
    const Recording read = journal.read();
    EXPECT_FALSE(read.lost.any()) << read.lost.damage;
    EXPECT_EQ(read.path, journal.path());
    ASSERT_EQ(read.entries.size(), 3U);
    EXPECT_EQ(read.entries[0].text(Field::text), "first");
    EXPECT_EQ(read.entries[1].text(Field::text), std::string("\0\xff\n", 3));
    EXPECT_EQ(read.entries[2].text(Field::text), "");
    EXPECT_EQ(read.entries[2].number(Field::pid), 9U);
    for (const EntryRead& entry : read.entries) {
        EXPECT_EQ(entry.kind, EntryKind::step_started);
        EXPECT_EQ(entry.tid, static_cast<std::uint32_t>(gettid()));
        EXPECT_GE(entry.realtime_ns, before);
        EXPECT_LE(entry.realtime_ns, realtime_ns());
    }
}

TEST(Journal, KeepsErrnoAndSaysNoWhereItCannotWrite) {
    errno = EXDEV;
    EXPECT_FALSE(append_text(-1, 1, "nowhere"));
    EXPECT_EQ(errno, EXDEV);
}

TEST(Journal, HoldsEveryEntryOfEightProcessesThatAppendAtOnce) {
    constexpr std::uint64_t kProcesses = 8;
    constexpr std::uint64_t kEntries = 200;
    const OpenJournal journal;
    std::vector<pid_t> children;
    for (std::uint64_t process = 0; process < kProcesses; ++process) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            const int file = journal.open_again();
            bool all = file >= 0;
            for (std::uint64_t i = 0; i < kEntries; ++i) {
                // Up to two pages, so that a write that is not one could be seen.
                const std::string text((i * 41 + process) % 8192, static_cast<char>('a' + process));
                all = append_text(file, process * kEntries + i, text) && all;
            }
            _exit(all ? 0 : 1);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = -1;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_EQ(status, 0);
    }
    const Recording read = journal.read();
    EXPECT_FALSE(read.lost.any()) << read.lost.torn_entries;
    ASSERT_EQ(read.entries.size(), kProcesses * kEntries);
    std::array<std::uint64_t, kProcesses> next{};
    for (const EntryRead& entry : read.entries) {
        const std::uint64_t number = entry.number(Field::pid).value_or(0);
        const std::uint64_t process = number / kEntries;
        ASSERT_LT(process, kProcesses);
        ASSERT_EQ(number % kEntries, next[process]++) << "of one process, in its order";
        ASSERT_EQ(entry.text(Field::text), std::string((number % kEntries * 41 + process) % 8192,
                                                       static_cast<char>('a' + process)));
    }
}

TEST(Journal, HoldsAsManyFieldsAsAnEntryMayHaveAndLeavesTheRestOut) {
    const OpenJournal journal;
    std::vector<FieldValue> fields;
    for (std::uint64_t i = 0; i <= kJournalFields; ++i) {
        fields.push_back(FieldValue::of(Field::index, i));
    }
    ASSERT_TRUE(
        append_to_journal(journal.file, EntryKind::step_started, fields.data(), kJournalFields));
    ASSERT_TRUE(append_to_journal(journal.file, EntryKind::step_started, fields.data(),
                                  kJournalFields + 1));
    const Recording read = journal.read();
    EXPECT_FALSE(read.lost.any());
    ASSERT_EQ(read.entries.size(), 2U);
    for (const EntryRead& entry : read.entries) {
        ASSERT_EQ(entry.fields.size(), kJournalFields);
        EXPECT_EQ(entry.fields.back().number, kJournalFields - 1);
    }
}

TEST(Journal, RefusesAnEntryThatItsLengthCannotTell) {
    const OpenJournal journal;
    const char byte = 'x';
    // The bytes are never looked at: the sizes alone are too much.
    const std::array fields = {FieldValue::of(Field::text, &byte, std::size_t{1} << 31),
                               FieldValue::of(Field::text, &byte, std::size_t{1} << 31)};
    EXPECT_FALSE(
        append_to_journal(journal.file, EntryKind::step_started, fields.data(), fields.size()));
    EXPECT_EQ(journal.size(), 0U);
}

TEST(JournalFile, IsNothingAndNoLossWhereItIsEmpty) {
    const OpenJournal journal;
    const Recording read = journal.read();
    EXPECT_TRUE(read.entries.empty());
    EXPECT_FALSE(read.lost.any());
}

TEST(JournalFile, IsAReasonWhereItIsAbsentOrNoFile) {
    const TemporaryDirectory directory;
    const ReadResult absent = read_journal(directory.file("absent"));
    EXPECT_FALSE(absent.recording);
    EXPECT_EQ(absent.error.why, std::strerror(ENOENT));
    EXPECT_EQ(read_journal(directory.path()).error.why, "not a file");
    ASSERT_EQ(mkfifo(directory.file("pipe").c_str(), 0600), 0);
    EXPECT_EQ(read_journal(directory.file("pipe")).error.why, "not a file");
}

TEST(JournalFile, IsNotReadIntoMemoryWhereNoBuildCouldHaveWrittenIt) {
    const OpenJournal journal;
    ASSERT_EQ(ftruncate(journal.file, (off_t{1} << 30) + 1), 0);
    EXPECT_EQ(read_journal(journal.path()).error.why,
              "larger than any recording (1073741825 bytes)");
}

TEST(DamagedJournal, CutAtEveryLengthLosesTheCutEntryAndSaysSo) {
    const std::vector<std::byte> bytes = small_journal();
    const Recording whole = parse_journal(bytes);
    const std::vector<std::size_t> begins = begins_of(bytes);
    ASSERT_EQ(whole.entries.size(), 4U);
    for (std::size_t length = 0; length <= bytes.size(); ++length) {
        // A copy of exactly this length: AddressSanitizer sees a read past its end.
        const std::vector<std::byte> cut(bytes.begin(),
                                         bytes.begin() + static_cast<std::ptrdiff_t>(length));
        const Recording read = parse_journal(cut);
        const auto begun = static_cast<std::size_t>(
            std::count_if(begins.begin(), begins.end(), [&](std::size_t b) { return b < length; }));
        const bool clean = length == bytes.size() ||
                           std::find(begins.begin(), begins.end(), length) != begins.end();
        ASSERT_TRUE(is_part_of(read.entries, whole.entries)) << "cut at " << length;
        ASSERT_EQ(read.entries.size(), clean ? begun : begun - 1) << "cut at " << length;
        ASSERT_EQ(read.lost.torn_entries, clean ? 0U : 1U) << "cut at " << length;
    }
}

TEST(DamagedJournal, ResumesBehindGarbageAndCountsOneLoss) {
    const std::vector<std::byte> bytes = small_journal();
    const Recording whole = parse_journal(bytes);
    const auto all = std::span<const std::byte>(bytes);
    const std::size_t second = begins_of(bytes)[1];
    for (std::size_t length = 1; length < 64; ++length) {
        for (const unsigned value : {0x00U, 0xffU, 0xc0U, 0x01U}) {
            const std::vector<std::byte> garbage(length, static_cast<std::byte>(value));
            const Recording read =
                parse_journal(joined({all.subspan(0, second), garbage, all.subspan(second)}));
            ASSERT_EQ(read.entries.size(), whole.entries.size()) << length << " of " << value;
            ASSERT_TRUE(is_part_of(read.entries, whole.entries));
            ASSERT_EQ(read.lost.torn_entries, 1U) << length << " of " << value;
        }
    }
}

// A writer that was killed, or found no room, inside its write: others append behind what it left.
TEST(DamagedJournal, GivesWhatWasAppendedBehindACutEntry) {
    const std::vector<std::byte> bytes = small_journal();
    const Recording whole = parse_journal(bytes);
    const auto all = std::span<const std::byte>(bytes);
    const std::vector<std::size_t> begins = begins_of(bytes);
    for (std::size_t cut = begins[1] + 1; cut < begins[2]; ++cut) {
        const Recording read = parse_journal(joined({all.subspan(0, cut), all.subspan(begins[2])}));
        ASSERT_TRUE(is_part_of(read.entries, whole.entries)) << "cut at " << cut;
        ASSERT_EQ(read.entries.size(), 3U) << "cut at " << cut;
        ASSERT_EQ(read.lost.torn_entries, 1U) << "cut at " << cut;
    }
}

TEST(DamagedJournal, WithAnyByteFlippedLosesNoOtherEntry) {
    const std::vector<std::byte> bytes = small_journal();
    const Recording whole = parse_journal(bytes);
    const std::vector<std::size_t> begins = begins_of(bytes);
    std::vector<std::byte> flipped = bytes;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        const auto touched =
            std::upper_bound(begins.begin(), begins.end(), at) - begins.begin() - 1;
        for (const unsigned mask : {1U, 2U, 4U, 8U, 16U, 32U, 64U, 128U, 255U}) {
            flipped[at] = bytes[at] ^ static_cast<std::byte>(mask);
            const Recording read = parse_journal(flipped);
            std::vector<EntryRead> others = whole.entries;
            others.erase(others.begin() + touched);
            ASSERT_TRUE(is_part_of(others, read.entries)) << "byte " << at << " xor " << mask;
            ASSERT_LE(read.entries.size(), whole.entries.size());
            ASSERT_EQ(read.entries.size() + read.lost.torn_entries, whole.entries.size())
                << "byte " << at << " xor " << mask;
        }
        flipped[at] = bytes[at];
    }
}

TEST(DamagedJournal, IsNotReadBeyondItsEndWhateverItsLengthsSay) {
    const std::vector<std::byte> bytes = small_journal();
    for (const std::uint32_t length : {0U, 8U, 16U, 25U, 1U << 20, 0x7ffffff8U, 0xfffffff8U}) {
        std::vector<std::byte> changed = bytes;
        const std::uint32_t commit = kCommitted ^ length;
        std::memcpy(changed.data() + offsetof(EntryHead, commit), &commit, sizeof commit);
        std::memcpy(changed.data() + offsetof(EntryHead, bytes), &length, sizeof length);
        const Recording read = parse_journal(changed);
        EXPECT_EQ(read.entries.size(), 3U) << "entry of " << length;
        EXPECT_EQ(read.lost.torn_entries, 1U) << "entry of " << length;
    }
    for (const std::uint32_t length : {1U << 16, 0x7fffffffU, 0xfffffff0U, 0xffffffffU}) {
        std::vector<std::byte> changed = bytes;
        std::memcpy(changed.data() + sizeof(EntryHead) + offsetof(FieldHead, bytes), &length,
                    sizeof length);
        const Recording read = parse_journal(changed);
        EXPECT_EQ(read.entries.size(), 3U) << "field of " << length;
        EXPECT_EQ(read.lost.torn_entries, 1U) << "field of " << length;
    }
}

TEST(DamagedJournal, OfOtherBytesIsDamageAndNothingElse) {
    for (const std::string& text :
         {std::string("x"), std::string(100, '\0'), std::string(kMagic, 8),
          std::string("not a journal, but longer than any head is")}) {
        const Recording read = parse_journal(std::as_bytes(std::span(text)));
        EXPECT_TRUE(read.entries.empty());
        EXPECT_EQ(read.lost.torn_entries, 1U);
    }
}

TEST(JournalUnderAFileSizeLimit, LosesTheEntryThatFindsNoRoomAndNoOther) {
    const OpenJournal journal;
    ASSERT_TRUE(append_text(journal.file, 1, std::string(100, 'a')));
    const std::size_t first = journal.size();
    const int status = status_of_child([&] {
        const rlimit limit{first + 60, first + 60};
        if (signal(SIGXFSZ, SIG_IGN) == SIG_ERR || setrlimit(RLIMIT_FSIZE, &limit) != 0) {
            return kCannotRunHere;
        }
        const bool cut = append_text(journal.file, 2, std::string(100, 'b'));
        const bool none = append_text(journal.file, 3, std::string(100, 'c'));
        return cut || none ? 1 : 0;
    });
    if (status == kCannotRunHere) {
        GTEST_SKIP() << "no file size limit here";
    }
    ASSERT_EQ(status, 0) << "an entry that was not written whole was called written";
    ASSERT_EQ(journal.size(), first + 60) << "the kernel writes up to the limit";
    ASSERT_TRUE(append_text(journal.file, 4, std::string(100, 'd')));
    const Recording read = journal.read();
    EXPECT_EQ(read.lost.torn_entries, 1U);
    ASSERT_EQ(read.entries.size(), 2U);
    EXPECT_EQ(read.entries[0].text(Field::text), std::string(100, 'a'));
    EXPECT_EQ(read.entries[1].number(Field::pid), 4U);
    EXPECT_EQ(read.entries[1].text(Field::text), std::string(100, 'd'));
}

}  // namespace
}  // namespace cudiag
