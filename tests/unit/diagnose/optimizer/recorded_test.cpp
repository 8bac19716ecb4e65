#include "diagnose/optimizer/recorded.h"

#include <gtest/gtest.h>

#include "tests/unit/record/recording_file.h"

namespace cudiag {
namespace {

using testing::OpenRecording;

DeviceRecord kernel_at(std::uint64_t begin, std::uint64_t end) {
    DeviceRecord record{};
    record.begin = begin;
    record.end = end;
    record.correlation = 9;
    return record;
}

void append_records(Writer& writer, const std::vector<DeviceRecord>& records) {
    const FieldValue field =
        FieldValue::of(Field::records, records.data(), records.size() * sizeof(DeviceRecord));
    ASSERT_TRUE(writer.append(EntryKind::device_records, &field, 1));
}

TEST(RecordedProfile, IsReadAsItWasWritten) {
    OpenRecording file{Capacity{}};
    const FieldValue mode = FieldValue::of(Field::name, "optimizer");
    ASSERT_TRUE(file.writer.append(EntryKind::profile, &mode, 1));
    const FieldValue begin[] = {FieldValue::of(Field::status, std::uint64_t{1}),
                                FieldValue::of(Field::count, std::uint64_t{5}),
                                FieldValue::of(Field::path, "/x/libcupti.so.13"),
                                FieldValue::of(Field::cupti_version, std::uint64_t{130001})};
    ASSERT_TRUE(file.writer.append(EntryKind::profile_window, begin, 4));
    const FieldValue name[] = {FieldValue::of(Field::index, std::uint64_t{1}),
                               FieldValue::of(Field::name, "_Z1kv")};
    ASSERT_TRUE(file.writer.append(EntryKind::profile_name, name, 2));
    const std::uint64_t now = realtime_ns();
    append_records(file.writer, {kernel_at(now + 50, now + 70), kernel_at(now + 10, now + 20)});
    const FieldValue text[] = {
        FieldValue::of(Field::index, std::uint64_t{0}),
        FieldValue::of(Field::text,
                       "class\ttorch.optim.adamw.AdamW\nparameters\tfloat32\tcuda:0\t2\t9"
                       "\nparameters\tbfloat16\tcuda:0\t1\t4")};
    ASSERT_TRUE(file.writer.append(EntryKind::optimizer, text, 2));
    StepRecord step{};
    step.number = 3;
    step.loading = 77;
    const FieldValue steps = FieldValue::of(Field::records, &step, sizeof step);
    ASSERT_TRUE(file.writer.append(EntryKind::optimizer_step, &steps, 1));
    const FieldValue end[] = {FieldValue::of(Field::status, std::uint64_t{0}),
                              FieldValue::of(Field::count, std::uint64_t{7}),
                              FieldValue::of(Field::kept, std::uint64_t{2}),
                              FieldValue::of(Field::not_kept, std::uint64_t{0})};
    ASSERT_TRUE(file.writer.append(EntryKind::profile_window, end, 4));

    const RecordedProfile profile = recorded_profile_of(file.read());
    EXPECT_EQ(profile.mode, "optimizer");
    ASSERT_EQ(profile.windows.size(), 1U);
    EXPECT_TRUE(profile.windows[0].ended);
    EXPECT_EQ(profile.windows[0].launches_after - profile.windows[0].launches_before, 2U);
    EXPECT_EQ(profile.windows[0].cupti_version, 130001U);
    EXPECT_FALSE(profile.windows[0].dropped) << "it could not be read";
    ASSERT_EQ(profile.device.size(), 2U);
    EXPECT_EQ(profile.device[0].begin, now + 10) << "by begin";
    ASSERT_EQ(profile.names.size(), 2U);
    EXPECT_EQ(profile.names[1], "_Z1kv");
    ASSERT_EQ(profile.steps.size(), 1U);
    EXPECT_EQ(profile.steps[0].loading, 77U);
    const OptimizerText& optimizer = profile.optimizers.at(0);
    EXPECT_EQ(optimizer.first("class"), "torch.optim.adamw.AdamW");
    EXPECT_EQ(optimizer.first("fused"), "");
    ASSERT_EQ(optimizer.all("parameters").size(), 2U);
    EXPECT_EQ(optimizer.all("parameters")[1][3], "4");
}

TEST(RecordedProfile, TurnsTicksIntoTimeAndLeavesOutOtherClocks) {
    OpenRecording file{Capacity{}};
    const std::uint64_t before = realtime_ns();
    const std::uint64_t ticks = read_ticks();
    append_records(file.writer,
                   {kernel_at(ticks, ticks + 1000), kernel_at(kFirstTime + 5, kFirstTime + 9),
                    kernel_at(before + 9, before + 3), kernel_at(0, 0)});
    // The two clock pairs must lie apart to give a rate.
    const std::uint64_t until = realtime_ns() + 20'000'000;
    while (realtime_ns() < until) {
    }
    append_records(file.writer, {kernel_at(before, before + 1)});
    const RecordedProfile profile = recorded_profile_of(file.read());
    EXPECT_EQ(profile.out_of_range, 3U);
    ASSERT_EQ(profile.device.size(), 2U);
    constexpr std::uint64_t kMillisecond = 1'000'000;
    EXPECT_LT(profile.device[1].begin, before + kMillisecond);
    EXPECT_GT(profile.device[1].begin + kMillisecond, before);
}

TEST(RecordedProfile, SkipsWhatIsCut) {
    OpenRecording file{Capacity{}};
    const FieldValue field = FieldValue::of(Field::records, "12345", 5);
    ASSERT_TRUE(file.writer.append(EntryKind::device_records, &field, 1));
    ASSERT_TRUE(file.writer.append(EntryKind::optimizer_step, &field, 1));
    const FieldValue name[] = {FieldValue::of(Field::index, ~std::uint64_t{0}),
                               FieldValue::of(Field::name, "k")};
    ASSERT_TRUE(file.writer.append(EntryKind::profile_name, name, 2));
    const FieldValue end = FieldValue::of(Field::status, std::uint64_t{0});
    ASSERT_TRUE(file.writer.append(EntryKind::profile_window, &end, 1));
    const RecordedProfile profile = recorded_profile_of(file.read());
    EXPECT_TRUE(profile.device.empty());
    EXPECT_TRUE(profile.steps.empty());
    EXPECT_TRUE(profile.names.empty());
    EXPECT_TRUE(profile.windows.empty()) << "an end without a beginning";
}

}  // namespace
}  // namespace cudiag
