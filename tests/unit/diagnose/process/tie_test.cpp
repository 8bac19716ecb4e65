#include <gtest/gtest.h>

#include "diagnose/process/rules.h"

namespace cudiag {
namespace {

constexpr const char* kMissing =
    "libcudart.so.12: cannot open shared object file: No such file or directory";

LoadFailure probe(const std::string& error, std::uint64_t time = 1'000) {
    LoadFailure failure;
    failure.asked = "libcudart.so.12";
    failure.error = error;
    failure.time_ns = time;
    return failure;
}

Process python_that_ended(EndHow how, int status) {
    Process process;
    process.pid = process.root_pid = 42;
    process.exe = "/usr/bin/python3.11";
    process.end = how;
    process.end_status = status;
    process.end_time_ns = 2'000;
    process.failures.push_back(probe(kMissing));
    return process;
}

PythonException exception(const std::string& type, const std::string& message,
                          std::uint64_t chain = 0) {
    PythonException e;
    e.type = type;
    e.message = message;
    e.chain = chain;
    return e;
}

TEST(TieOfALoadToTheEnd, IsNamedWhenTheExceptionCarriesTheText) {
    Process process = python_that_ended(EndHow::exit, 1);
    process.exceptions = {exception("OSError", kMissing)};
    EXPECT_EQ(tie_of(process, process.failures[0]), Tie::named);
}

TEST(TieOfALoadToTheEnd, IsNamedWhenACauseInTheChainCarriesTheText) {
    Process process = python_that_ended(EndHow::exit, 1);
    process.exceptions = {exception("ValueError", "libcublasLt.so.*[0-9] not found"),
                          exception("OSError", kMissing, 1)};
    EXPECT_EQ(tie_of(process, process.failures[0]), Tie::named);
}

TEST(TieOfALoadToTheEnd, IsNoneForAProbeBeforeAnotherException) {
    Process process = python_that_ended(EndHow::exit, 1);
    process.exceptions = {exception("KeyError", "'x'")};
    EXPECT_EQ(tie_of(process, process.failures[0]), Tie::none);
}

TEST(TieOfALoadToTheEnd, IsNoneForAProbeBeforeSystemExit) {
    const Process process = python_that_ended(EndHow::exit, 3);
    EXPECT_EQ(tie_of(process, process.failures[0]), Tie::none);
}

TEST(TieOfALoadToTheEnd, IsNoneForAProbeInAProgramThatEndedWell) {
    Process process = python_that_ended(EndHow::exit, 0);
    process.exe = "/opt/tool";
    EXPECT_EQ(tie_of(process, process.failures[0]), Tie::none);
}

TEST(TieOfALoadToTheEnd, IsTheLastWordOfAProgramWithoutPython) {
    Process process = python_that_ended(EndHow::exit, 1);
    process.exe = "/opt/tool";
    EXPECT_EQ(tie_of(process, process.failures[0]), Tie::last_word);
}

TEST(TieOfALoadToTheEnd, IsNoneWhenTheLastWordIsALibraryNobodyKnows) {
    Process process = python_that_ended(EndHow::exit, 1);
    process.exe = "/opt/tool";
    process.failures[0] =
        probe("libplugin.so: cannot open shared object file: No such file or directory");
    EXPECT_EQ(tie_of(process, process.failures[0]), Tie::none);
}

TEST(TieOfALoadToTheEnd, IsSwallowedForCertainBreakage) {
    Process process = python_that_ended(EndHow::exit, 0);
    process.failures[0].breakage = true;
    EXPECT_EQ(tie_of(process, process.failures[0]), Tie::swallowed);
}

TEST(TieOfALoadToTheEnd, IsNoneForBreakageBeforeAnErrorOfARunningGpu) {
    Process process = python_that_ended(EndHow::exit, 1);
    process.failures[0].breakage = true;
    process.exceptions = {exception(
        "CUDARuntimeError", "cudaErrorIllegalAddress: an illegal memory access was encountered")};
    EXPECT_EQ(tie_of(process, process.failures[0]), Tie::none);
    process.exceptions = {
        exception("AcceleratorError", "CUDA error: device-side assert triggered")};
    EXPECT_EQ(tie_of(process, process.failures[0]), Tie::none);
    process.exceptions = {
        exception("OutOfMemoryError", "CUDA out of memory. Tried to allocate 20.00 GiB.")};
    EXPECT_EQ(tie_of(process, process.failures[0]), Tie::none);
    process.exceptions = {exception("RuntimeError", "CUDA error: initialization error")};
    EXPECT_EQ(tie_of(process, process.failures[0]), Tie::swallowed);
}

TEST(TieOfALoadToTheEnd, TiesAProbeToTheLookupThatFailedInTheSamePackage) {
    Process process = python_that_ended(EndHow::exit, 1);
    process.failures[0].python = {
        {"/v/lib/python3.11/site-packages/bitsandbytes/cextension.py", 10, "setup"}};
    LoadFailure lookup;
    lookup.is_lookup = true;
    lookup.time_ns = 1'500;
    lookup.error =
        "/v/lib/python3.11/site-packages/bitsandbytes/libbitsandbytes_cpu.so: undefined symbol: "
        "cget_col_row_stats";
    process.failures.push_back(lookup);
    process.exceptions = {exception("AttributeError", lookup.error)};
    EXPECT_EQ(tie_of(process, process.failures[0]), Tie::swallowed);

    process.failures[0].python = {{"/v/lib/python3.11/site-packages/other/probe.py", 10, "setup"}};
    EXPECT_EQ(tie_of(process, process.failures[0]), Tie::none);
}

TEST(HiddenCause, NamesBothErrors) {
    Process process = python_that_ended(EndHow::exit, 1);
    process.failures[0].breakage = true;
    process.exceptions = {exception("RuntimeError", "operator torchvision::nms does not exist")};
    Finding cause;
    cause.slug = "loader-missing-library";
    cause.title = "T";
    const auto finding = hidden_cause(process, process.failures[0], cause, Tie::swallowed);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["visible_error"],
              "RuntimeError: operator torchvision::nms does not exist");
    EXPECT_EQ(finding->evidence["hidden_error"], kMissing);
    EXPECT_EQ(finding->confidence, Confidence::likely);
}

TEST(HiddenCause, IsSilentWhenTheUserSawTheCauseItself) {
    Process process = python_that_ended(EndHow::exit, 1);
    process.exceptions = {exception("ImportError", kMissing)};
    EXPECT_FALSE(hidden_cause(process, process.failures[0], Finding{}, Tie::named));
}

TEST(ProcessKilled, IsSilentForAProcessThatStillRuns) {
    Process process;
    process.alive = true;
    EXPECT_FALSE(process_killed(process, {}));
}

TEST(ProcessKilled, NamesTheSignalThatTheParentSaw) {
    Process process;
    process.pid = 7;
    ChildDeath death;
    death.pid = 7;
    death.status = 9;
    const auto finding = process_killed(process, {death});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["signal"], "SIGKILL");
    EXPECT_EQ(finding->confidence, Confidence::certain);
}

TEST(RecordIncomplete, IsSilentOnAWholeRecording) {
    EXPECT_FALSE(record_incomplete(Process{}));
    EXPECT_FALSE(journal_incomplete(Facts{}));
}

TEST(RecordIncomplete, CountsWhatARecordingLost) {
    Process process;
    process.pid = 7;
    process.recording = "/runs/1/7.rec";
    process.lost.dropped_entries = 3;
    const auto finding = record_incomplete(process);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->severity, Severity::warning);
    EXPECT_EQ(finding->pid, 7);
    EXPECT_EQ(finding->evidence["recording"], "/runs/1/7.rec");
    EXPECT_EQ(finding->evidence["dropped_entries"], 3);
}

TEST(RecordIncomplete, CountsWhatAJournalLost) {
    Facts facts;
    facts.run_directory = "/runs/1";
    facts.build.lost.torn_entries = 1;
    const auto finding = journal_incomplete(facts);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["recording"], "/runs/1/build.journal");
    EXPECT_EQ(finding->evidence["torn_entries"], 1);
}

}  // namespace
}  // namespace cudiag
