// Recordings of every format version ever written still read the same. A difference here is a
// broken promise to whoever keeps old recordings: mend the reader, not the expectation.
#include <iomanip>
#include <sstream>

#include "tests/unit/record/recording_file.h"

namespace cudiag {
namespace {

std::string quoted(const std::string& text) {
    std::ostringstream out;
    out << '"' << std::hex << std::setfill('0');
    for (const char c : text) {
        if (c >= ' ' && c <= '~') {
            out << c;
        } else {
            out << "\\x" << std::setw(2) << static_cast<unsigned>(static_cast<unsigned char>(c));
        }
    }
    out << '"';
    return out.str();
}

std::string in_words(const Recording& recording) {
    const Header& header = recording.header;
    std::ostringstream out;
    out << "version " << header.version << " pid " << header.pid << " ppid " << header.ppid
        << " root " << header.root_pid << " start " << header.start_ticks << ' '
        << header.root_start_ticks << " uid " << header.uid << '\n'
        << "opened " << header.open_realtime_ns << " end " << header.end_how << " status "
        << header.end_status << " at " << header.end_realtime_ns << '\n';
    for (const EntryRead& entry : recording.entries) {
        out << "entry " << static_cast<unsigned>(entry.kind) << " tid " << entry.tid << " at "
            << entry.realtime_ns << '\n';
        for (const FieldRead& field : entry.fields) {
            out << "  " << static_cast<unsigned>(field.field) << ' ';
            if (static_cast<unsigned>(field.field) >= 64 && field.text.size() == 8) {
                out << field.number << '\n';
            } else {
                out << quoted(field.text) << '\n';
            }
        }
    }
    for (const HotRead& hot : recording.hot) {
        out << "hot " << hot.kind << " flags " << hot.flags << " tid " << hot.tid << " at "
            << hot.realtime_ns << " words";
        for (const std::uint64_t word : hot.words) {
            out << ' ' << word;
        }
        out << '\n';
    }
    const Losses& lost = recording.lost;
    out << "lost: torn " << lost.torn_entries << " dropped " << lost.dropped_entries
        << " overwritten " << lost.overwritten << " torn records " << lost.torn_records
        << " refused " << lost.refused_threads << " damage " << quoted(lost.damage) << '\n';
    return out.str();
}

// Version 1, and what was added to it: v1_kinds_N holds the kinds of entries from N on.
TEST(Golden, Version1StillReadsTheSame) {
    for (const std::string name : {"v1", "v1_kinds_40"}) {
        const std::string path = CUDIAG_TEST_DATA "/golden/record/" + name;
        const ReadResult result = read_recording(path + ".recording");
        ASSERT_TRUE(result.recording) << name << ": " << result.error.why;
        std::ifstream file(path + ".expected");
        std::stringstream expected;
        expected << file.rdbuf();
        EXPECT_EQ(in_words(*result.recording), expected.str()) << name;
    }
}

}  // namespace
}  // namespace cudiag
