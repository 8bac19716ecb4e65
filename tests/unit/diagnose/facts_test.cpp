#include "diagnose/facts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/diagnose/cuda/core_file.h"
#include "tests/unit/diagnose/entries.h"

namespace cudiag {
namespace {

using testing::number;
using testing::text;

Recording recording_of(std::vector<EntryRead> entries) {
    Recording recording;
    recording.header.pid = 7;
    recording.header.root_pid = 7;
    recording.header.end_how = static_cast<std::uint32_t>(EndHow::exit);
    recording.header.end_status = 1;
    recording.entries = std::move(entries);
    return recording;
}

TEST(Facts, KeepFramesWithTheirOwnLines) {
    const Process process =
        facts_of(recording_of({{EntryKind::dlopen_failed,
                                8,
                                100,
                                {text(Field::name, "libx.so"), text(Field::python_file, "a.py"),
                                 number(Field::python_line, 3), text(Field::python_function, "f"),
                                 text(Field::python_file, "b.py"), number(Field::python_line, 9),
                                 text(Field::python_function, "g")}}}));
    ASSERT_EQ(process.failures.size(), 1U);
    ASSERT_EQ(process.failures[0].python.size(), 2U);
    EXPECT_EQ(process.failures[0].python[0].file, "a.py");
    EXPECT_EQ(process.failures[0].python[0].line, 3U);
    EXPECT_EQ(process.failures[0].python[1].function, "g");
}

TEST(Facts, GiveEachFailureTheModulesOfItsTime) {
    const Process process =
        facts_of(recording_of({{EntryKind::module, 8, 1, {text(Field::path, "/bin/x")}},
                               {EntryKind::snapshot, 8, 1, {number(Field::snapshot, 1)}},
                               {EntryKind::dlopen_failed, 8, 2, {number(Field::snapshot, 1)}},
                               {EntryKind::module, 8, 3, {text(Field::path, "/bin/x")}},
                               {EntryKind::module, 8, 3, {text(Field::path, "/lib/y.so")}},
                               {EntryKind::snapshot, 8, 3, {number(Field::snapshot, 2)}}}));
    EXPECT_EQ(process.modules_at(1).size(), 1U);
    EXPECT_EQ(process.modules_at(2).size(), 2U);
    EXPECT_TRUE(process.modules_at(3).empty());
}

TEST(Facts, KeepFailedCallsOfTheDriverInTheirOrder) {
    const Process process = facts_of(recording_of(
        {{EntryKind::cuda_driver,
          8,
          1,
          {text(Field::path, "/lib/libcuda.so.1"), number(Field::driver_version, 13000)}},
         {EntryKind::cuda_call_failed,
          9,
          200,
          {text(Field::name, "cuMemAlloc_v2"), number(Field::error, 2),
           text(Field::text, "out of memory"), text(Field::caller, "/lib/libcudart.so.13"),
           number(Field::caller_offset, 64), text(Field::python_file, "train.py"),
           number(Field::python_line, 7), text(Field::python_function, "step")}},
         {EntryKind::cuda_call_failed, 9, 300, {text(Field::name, "cuInit")}}}));
    ASSERT_TRUE(process.cuda_driver);
    EXPECT_EQ(process.cuda_driver->path, "/lib/libcuda.so.1");
    EXPECT_EQ(process.cuda_driver->version, 13000U);
    ASSERT_EQ(process.cuda_failures.size(), 2U);
    const FailedCudaCall& first = process.cuda_failures[0];
    EXPECT_EQ(first.name, "cuMemAlloc_v2");
    EXPECT_EQ(first.error, 2U);
    EXPECT_EQ(first.text, "out of memory");
    EXPECT_EQ(first.caller, "/lib/libcudart.so.13");
    EXPECT_EQ(first.caller_offset, 64U);
    EXPECT_EQ(first.time_ns, 200U);
    EXPECT_EQ(first.tid, 9);
    ASSERT_EQ(first.python.size(), 1U);
    EXPECT_EQ(first.python[0].file, "train.py");
    // What a damaged entry lacks is told as nothing, not invented.
    EXPECT_EQ(process.cuda_failures[1].error, 0U);
    EXPECT_TRUE(process.cuda_failures[1].python.empty());
}

TEST(Facts, KnowNoDriverWhereNoneWasAsked) {
    const Process process = facts_of(recording_of({{EntryKind::snapshot, 8, 1, {}}}));
    EXPECT_FALSE(process.cuda_driver);
    EXPECT_TRUE(process.cuda_failures.empty());
}

TEST(Facts, ReadTheCoreDumpOfTheGpuWhereItWasToBeWritten) {
    const auto process_with = [](const std::string& path, std::uint64_t start_ns) {
        Recording recording =
            recording_of({{EntryKind::cuda_core, 8, 1, {text(Field::path, path)}}});
        recording.header.open_realtime_ns = start_ns;
        return facts_of(recording);
    };
    const Process without = process_with("/nonexistent/1.core", 0);
    ASSERT_TRUE(without.gpu_core);
    EXPECT_EQ(without.gpu_core->path, "/nonexistent/1.core");
    EXPECT_NE(without.gpu_core->problem, "");

    testing::CoreFile file;
    file.multiprocessors(testing::row({}, {0, 0}), 8);
    file.block(0, 0, testing::warp_at(0), testing::thread_at(testing::kKernelAt, 0, 14));
    constexpr std::uint64_t kWritten = 1'700'000'000;
    file.add(testing::kUser + 22, 0, 0, testing::row({1}, {580, 65, 13, 0, 0, kWritten}));
    const auto path = std::filesystem::path{::testing::TempDir()} / "facts.core";
    std::ofstream{path} << file.bytes();
    constexpr std::uint64_t kSecond = 1'000'000'000;
    const Process process = process_with(path, (kWritten - 60) * kSecond);
    ASSERT_TRUE(process.gpu_core);
    EXPECT_EQ(process.gpu_core->driver, "580.65");
    EXPECT_EQ(process.gpu_core->exceptions.size(), 1U);

    const Process later = process_with(path, (kWritten + 60) * kSecond);
    EXPECT_EQ(later.gpu_core->problem, "it is older than this process");
    EXPECT_TRUE(later.gpu_core->exceptions.empty());
    std::filesystem::remove(path);
}

TEST(Facts, SkipKindsAndFieldsOfALaterFormat) {
    const Process process = facts_of(
        recording_of({{static_cast<EntryKind>(999), 8, 1, {text(static_cast<Field>(999), "?")}},
                      {EntryKind::process, 8, 1, {text(Field::argument, "python")}}}));
    EXPECT_EQ(process.argv, std::vector<std::string>{"python"});
}

TEST(Facts, TellAFailedEndFromAGoodOne) {
    Process process;
    process.end = EndHow::exit;
    EXPECT_FALSE(process.failed());
    process.end_status = 1;
    EXPECT_TRUE(process.failed());
    process.end = EndHow::exec;
    EXPECT_FALSE(process.failed());
    process.end = EndHow::none;
    process.alive = true;
    EXPECT_FALSE(process.failed());
    process.alive = false;
    EXPECT_TRUE(process.failed());
}

HotRead launch_at(std::uint32_t tid, std::uint64_t ticks, std::uint64_t latest,
                  std::uint64_t function) {
    return {.tid = tid,
            .kind = static_cast<std::uint16_t>(HotKind::launch),
            .ticks = ticks,
            .latest_ticks = latest,
            .words = {function, kLegacyStream}};
}

// A wait for the legacy stream by thread 8 that began at 200.
HotRead wait_from_200() {
    return {.tid = 8,
            .kind = static_cast<std::uint16_t>(HotKind::waited),
            .ticks = 400,
            .latest_ticks = 400,
            .words = {kLegacyStream, static_cast<std::uint64_t>(WaitedFor::stream), 200, 1}};
}

TEST(Facts, TakeALaunchForDoneOnlyIfItWasSurelyBeforeTheWait) {
    Recording recording = recording_of({});
    // The waiting thread's own, undated: it was before its wait.
    recording.hot.push_back(launch_at(8, 100, 400, 1));
    recording.hot.push_back(launch_at(9, 100, 150, 2));
    // Another's, undated: it may have come while the first waited.
    recording.hot.push_back(launch_at(9, 150, 350, 3));
    recording.hot.push_back(launch_at(kSharedRing, 190, 190, 4));
    recording.hot.push_back(launch_at(kSharedRing, 200, 200, 5));
    recording.hot.push_back(wait_from_200());
    const Process process = facts_of(recording);
    std::map<std::uint64_t, bool> done;
    for (const CudaLaunch& launch : process.launches) {
        done[launch.handle] = launch.done;
    }
    const std::map<std::uint64_t, bool> expected{
        {1, true}, {2, true}, {3, false}, {4, true}, {5, false}};
    EXPECT_EQ(done, expected);
}

TEST(Facts, ListWhatCouldNotBeRead) {
    const auto directory = std::filesystem::path{::testing::TempDir()} / "facts_unreadable";
    std::filesystem::create_directories(directory);
    std::ofstream{directory / "1.rec"} << "not a recording";
    std::ofstream{directory / "run.json"} << R"({"deaths": "nonsense"})";
    const Facts facts = gather_facts(directory.string());
    EXPECT_TRUE(facts.processes.empty());
    ASSERT_EQ(facts.unreadable.size(), 1U);
    EXPECT_NE(facts.unreadable[0].find("1.rec"), std::string::npos);
    EXPECT_TRUE(facts.deaths.empty());
    std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace cudiag
