#include "shim/opens.h"

#include <string>
#include <vector>

#include "tests/unit/shim/in_a_child.h"

namespace cudiag {
namespace {

using testing::in_a_child;

constexpr std::size_t kTrailBytes = std::size_t{128} << 10;

// What is kept, each path with its sign.
std::vector<std::string> kept() {
    const FieldValue field = opens_field();
    EXPECT_EQ(field.field, Field::opens);
    const std::string bytes(static_cast<const char*>(field.bytes), field.size);
    std::vector<std::string> paths;
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t end = bytes.find('\0', at);
        EXPECT_NE(end, std::string::npos) << "the last path is cut";
        if (end == std::string::npos) {
            break;
        }
        paths.push_back(bytes.substr(at, end - at));
        at = end + 1;
    }
    return paths;
}

// A path that tells its number, of `length` bytes.
std::string path_of(std::size_t number, std::size_t length) {
    std::string path = "/" + std::to_string(number) + "/";
    return path + std::string(length - path.size(), 'x');
}

TEST(OpensTest, AreWatchedOnlyFromWhenTheyAreAskedFor) {
    in_a_child([] {
        EXPECT_FALSE(opens_are_watched());
        watch_opens();
        EXPECT_TRUE(opens_are_watched());
    });
}

TEST(OpensTest, AreNothingAtFirst) {
    in_a_child([] { EXPECT_EQ(opens_field().size, 0U); });
}

TEST(OpensTest, KeepTheOrderAndWhetherTheyCouldBeOpened) {
    in_a_child([] {
        note_open("/a/cusparse.h", false);
        note_open("relative.h", true);
        note_open("", false);
        EXPECT_EQ(kept(), (std::vector<std::string>{"-/a/cusparse.h", "+relative.h", "-"}));
        EXPECT_EQ(kept().size(), 3U) << "to look takes nothing away";
    });
}

TEST(OpensTest, ForgetTheOldestWhereTheTrailIsFull) {
    in_a_child([] {
        constexpr std::size_t kLength = 98;  // 100 with sign and NUL
        constexpr std::size_t kPaths = 5000;
        for (std::size_t i = 0; i < kPaths; ++i) {
            note_open(path_of(i, kLength).c_str(), i % 3 == 0);
        }
        const std::vector<std::string> paths = kept();
        // All that fit, less one that was overwritten in part.
        EXPECT_GE(paths.size(), kTrailBytes / (kLength + 2) - 1);
        EXPECT_LE(paths.size(), kTrailBytes / (kLength + 2));
        for (std::size_t back = 1; back <= paths.size(); ++back) {
            const std::size_t i = kPaths - back;
            ASSERT_EQ(paths[paths.size() - back], (i % 3 == 0 ? "+" : "-") + path_of(i, kLength));
        }
    });
}

TEST(OpensTest, KeepEveryPathWhereTheyFillTheTrailExactly) {
    in_a_child([] {
        constexpr std::size_t kPaths = kTrailBytes / 128;
        for (std::size_t i = 0; i < kPaths; ++i) {
            note_open(path_of(i, 126).c_str(), false);
        }
        EXPECT_EQ(kept().size(), kPaths);
        EXPECT_EQ(kept().front(), "-" + path_of(0, 126));
        note_open("x", true);
        EXPECT_EQ(kept().back(), "+x");
        EXPECT_EQ(kept().front(), "-" + path_of(1, 126));
    });
}

TEST(OpensTest, LeaveOutAPathThatWouldPushOutAllOthers) {
    in_a_child([] {
        note_open("/a", false);
        note_open(std::string(kTrailBytes, 'x').c_str(), false);
        note_open(std::string(kTrailBytes / 4, 'x').c_str(), false);
        EXPECT_EQ(kept(), std::vector<std::string>{"-/a"});
        note_open(std::string(kTrailBytes / 4 - 1, 'y').c_str(), true);
        EXPECT_EQ(kept().size(), 2U);
    });
}

}  // namespace
}  // namespace cudiag
