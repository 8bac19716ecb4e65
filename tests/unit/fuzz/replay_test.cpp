// Every input that ever crashed a fuzzer, and every seed, once more: without clang, for ever.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

namespace cudiag {
namespace {

// The number of files in tests/fuzz/FOLDER/TARGET that went through `consume`.
template <class Consume>
std::size_t replay(const std::string& folder, const std::string& target, Consume consume) {
    const std::filesystem::path path =
        std::filesystem::path(CUDIAG_TEST_DATA) / "fuzz" / folder / target;
    std::size_t count = 0;
    if (!std::filesystem::is_directory(path)) {
        return count;  // no crash was ever found
    }
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
        SCOPED_TRACE(entry.path());
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(file),
                               std::istreambuf_iterator<char>()};
        consume(std::as_bytes(std::span(text)));
        ++count;
    }
    return count;
}

TEST(FuzzReplay, ReaderSurvivesSeedsAndOldCrashes) {
    EXPECT_GE(replay("corpus", "reader", fuzz::reader), 3U) << "where are the seeds?";
    replay("crashes", "reader", fuzz::reader);
}

TEST(FuzzReplay, JournalSurvivesSeedsAndOldCrashes) {
    EXPECT_GE(replay("corpus", "journal", fuzz::journal), 3U) << "where are the seeds?";
    replay("crashes", "journal", fuzz::journal);
}

TEST(FuzzReplay, ElfSurvivesSeedsAndOldCrashes) {
    EXPECT_GE(replay("corpus", "elf", fuzz::elf), 3U) << "where are the seeds?";
    replay("crashes", "elf", fuzz::elf);
}

TEST(FuzzReplay, CoreDumpSurvivesSeedsAndOldCrashes) {
    EXPECT_GE(replay("corpus", "core_dump", fuzz::core_dump), 3U) << "where are the seeds?";
    replay("crashes", "core_dump", fuzz::core_dump);
}

TEST(FuzzReplay, FatbinSurvivesSeedsAndOldCrashes) {
    EXPECT_GE(replay("corpus", "fatbin", fuzz::fatbin), 3U) << "where are the seeds?";
    replay("crashes", "fatbin", fuzz::fatbin);
}

}  // namespace
}  // namespace cudiag
