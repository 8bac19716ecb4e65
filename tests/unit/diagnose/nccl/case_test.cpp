#include "diagnose/nccl_facts.h"
#include "diagnose/process/rules.h"
#include "tests/unit/diagnose/nccl/facts.h"

namespace cudiag {
namespace {

using testing::failed_of;
using testing::said_of;

// Words that speak of NCCL and tell of no failure of its own. Sources: torch 2.13.0 (run here
// without a GPU), torch's distributed_c10d.py, hiyouga/LlamaFactory#3698.
TEST(NcclCase, IsSilentOfAnExceptionThatOnlyMentionsNccl) {
    for (const char* message :
         {"ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
          "Distributed package doesn't have NCCL built in",
          "[4] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d "
          "key-value store by key '0', but store->get('0') got error: Socket Timeout",
          "expected backend nccl, gloo or mpi", "set NCCL_DEBUG=INFO and run again",
          "Call to socket failed: Too many open files", "Cuda failure 2 'out of memory'",
          "Connection closed by remote peer 10.0.0.1", ""}) {
        EXPECT_FALSE(said_of(std::string{message})) << message;
        EXPECT_FALSE(tells_of_nccl(message)) << message;
    }
}

TEST(NcclCase, IsSilentWhereNcclsWordsSettleNothingAndItsResultNeither) {
    EXPECT_FALSE(said_of(testing::invalid_usage("comm argument is NULL")));
    EXPECT_FALSE(
        said_of("NCCL error: internal error - please report this issue to the NCCL "
                "developers"));
}

TEST(NcclCase, IsSilentOfAProgramThatWentOnAndEndedWell) {
    Process process = failed_of(testing::system_error("Call to bind failed: Address in use"));
    ASSERT_TRUE(said_of({process}));
    process.end_status = 0;
    EXPECT_FALSE(said_of({process}));
}

TEST(NcclCase, IsLikelyOnlyWhereAnotherExceptionWasShownInTheEnd) {
    Process process =
        failed_of(testing::remote_error("socketProgress: Connection closed by remote "
                                        "peer node2<42830>"));
    ASSERT_TRUE(said_of({process}));
    EXPECT_EQ(said_of({process})->confidence, Confidence::certain);
    PythonException shown;
    shown.type = "SystemError";
    shown.message = "training failed";
    process.exceptions.insert(process.exceptions.begin(), shown);
    const auto finding = said_of({process});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->confidence, Confidence::likely);
    EXPECT_TRUE(testing::holds(finding->limits, "inferred"));
}

TEST(NcclCase, KeepsNcclsOwnLastErrorAndVersion) {
    const auto finding =
        said_of(testing::system_error("Call to bind failed: Address already in use", "2.21.5"));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "nccl-system-error");
    EXPECT_EQ(finding->evidence["result"], "ncclSystemError");
    EXPECT_EQ(finding->evidence["last_error"], "Call to bind failed: Address already in use");
    EXPECT_EQ(finding->evidence["nccl_version"], "2.21.5");
    EXPECT_TRUE(testing::holds(finding->title, "Address already in use"));
    EXPECT_TRUE(finding->fixes.empty()) << "these words settle no cause";
}

// jax-ml/jax#22747, NVIDIA/nccl#1657 (vLLM): no word of NCCL's own, or in another place.
TEST(NcclCase, ReadsTheWordsOfOtherFrameworks) {
    const auto jax = said_of(
        "INTERNAL: external/xla/xla/service/gpu/nccl_utils.cc:305: NCCL operation "
        "ncclCommInitRank(&comm, nranks, id, rank) failed: unhandled system error (run with "
        "NCCL_DEBUG=INFO for details). Last NCCL warning(error) log entry (may be unrelated) "
        "'socketTryAccept: Accept failed: Bad file descriptor'.");
    ASSERT_TRUE(jax);
    EXPECT_EQ(jax->evidence["last_error"], "socketTryAccept: Accept failed: Bad file descriptor");
    const auto vllm = said_of(
        "NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for "
        "details)");
    ASSERT_TRUE(vllm);
    EXPECT_EQ(vllm->evidence["last_error"], "not shown");
    EXPECT_TRUE(vllm->fixes.empty());
}

NcclCall failed_call(std::uint64_t result, const std::string& last_error) {
    NcclCall call;
    call.time_ns = testing::kEnd - 1'000'000'000;
    call.name = "ncclCommInitRank";
    call.result = result;
    call.text = "words of NCCL";
    call.last_error = last_error;
    call.library = "/site/nvidia/nccl/lib/libnccl.so.2";
    call.caller = "/site/torch/lib/libtorch_cuda.so";
    call.rank = 1;
    call.ranks = 2;
    call.device = 0;
    return call;
}

// torch.cuda.nccl: the result's words, and no last error.
TEST(NcclCase, TakesFromTheCallWhatTheProgramDidNotHandOn) {
    Process process =
        failed_of("NCCL Error 5: invalid usage (run with NCCL_DEBUG=WARN for details)");
    EXPECT_FALSE(said_of({process}));
    process.nccl_calls = {failed_call(5,
                                      "Duplicate GPU detected : rank 1 and rank 0 both on CUDA "
                                      "device 7000")};
    const auto finding = said_of({process});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "nccl-duplicate-gpu");
    EXPECT_EQ(finding->confidence, Confidence::certain);
    EXPECT_EQ(finding->evidence["call"], "ncclCommInitRank");
    EXPECT_EQ(finding->evidence["called_by"], "/site/torch/lib/libtorch_cuda.so");
    EXPECT_EQ(finding->evidence["nccl"], "/site/nvidia/nccl/lib/libnccl.so.2");
    EXPECT_EQ(finding->evidence["device"], 0);
    EXPECT_EQ(finding->evidence["call_rank"], 1);
    EXPECT_EQ(finding->evidence["processes_here"][0]["communicators"][0]["ranks"], 2);
}

TEST(NcclCase, TakesNothingFromACallWithAnotherResultOrAfterTheException) {
    Process process =
        failed_of("NCCL Error 5: invalid usage (run with NCCL_DEBUG=WARN for details)");
    process.nccl_calls = {failed_call(2, "Call to getifaddrs failed: Too many open files")};
    EXPECT_FALSE(said_of({process}));
    process.nccl_calls = {failed_call(5, "Bootstrap : no socket interface found")};
    ASSERT_TRUE(said_of({process}));
    process.nccl_calls.front().time_ns = process.exceptions.front().time_ns + 1;
    EXPECT_FALSE(said_of({process}));
}

TEST(NcclCase, TheProgramsOwnWordsGoBeforeThoseOfTheCall) {
    Process process =
        failed_of(testing::remote_error("socketProgress: Connection closed by remote "
                                        "peer node2<42830>"));
    process.nccl_calls = {failed_call(6, "Bootstrap : no socket interface found")};
    const auto finding = said_of({process});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "nccl-remote-error");
    EXPECT_TRUE(testing::holds(finding->title, "node2<42830>"));
}

TEST(NcclCase, ReadsTheLastCallOfAProgramWithoutWords) {
    Process process = failed_of("");
    process.exe = "/opt/bin/all_reduce_perf";
    process.exceptions.clear();
    process.end_time_ns = testing::kEnd;
    process.nccl_calls = {failed_call(5, "Bootstrap : no socket interface found")};
    const auto finding = said_of({process});
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->slug, "nccl-no-interface");
    EXPECT_EQ(finding->confidence, Confidence::likely);
    EXPECT_EQ(finding->evidence["error"], "ncclCommInitRank: 5 words of NCCL");
    // It went on for long; it is a Python, which has words of its own; it made a communicator only.
    Process later = process;
    later.nccl_calls.front().time_ns = 1;
    EXPECT_FALSE(said_of({later}));
    Process python = process;
    python.exe = "/usr/bin/python3.11";
    EXPECT_FALSE(said_of({python}));
    process.nccl_calls.front().result = 0;
    EXPECT_FALSE(said_of({process}));
}

EntryRead entry_of(std::uint32_t tid, std::optional<std::uint64_t> error) {
    const std::string eight(8, '\0');  // the bytes, which tell a number
    EntryRead entry;
    entry.kind = EntryKind::nccl_call;
    entry.tid = tid;
    entry.fields = {{.field = Field::name, .text = "ncclCommInitRank"},
                    {.field = Field::ranks, .text = eight, .number = 2}};
    if (error) {
        entry.fields.push_back({.field = Field::error, .text = eight, .number = *error});
    }
    return entry;
}

TEST(NcclFacts, KeepOfWhatWasEnteredWhatDidNotReturn) {
    Recording recording;
    recording.entries = {entry_of(1, {}), entry_of(2, {}), entry_of(1, 0), entry_of(3, 5)};
    Process process;
    add_nccl_facts(recording, process);
    ASSERT_EQ(process.nccl_calls.size(), 3U);
    EXPECT_EQ(process.nccl_calls[0].result, 0U);
    EXPECT_EQ(process.nccl_calls[1].result, 5U);
    EXPECT_EQ(process.nccl_calls[2].result, kNotReturned);
    EXPECT_EQ(process.nccl_calls[2].tid, 2);
    EXPECT_EQ(process.nccl_calls[2].ranks, 2U);
}

TEST(NcclFacts, TellWhereAKilledProcessWaitedForOtherRanks) {
    Process process = failed_of("");
    process.exceptions.clear();
    process.end = EndHow::none;
    process.nccl_calls = {failed_call(kNotReturned, "")};
    const auto finding = process_killed(process, {});
    ASSERT_TRUE(finding);
    EXPECT_TRUE(testing::holds(finding->title, "; it was in ncclCommInitRank, as rank 1 of 2"));
    EXPECT_EQ(finding->evidence["in_nccl"]["rank"], "1");
    EXPECT_FALSE(said_of({process})) << "a call that did not return has not failed";
    process.lost.dropped_entries = 1;
    EXPECT_FALSE(process_killed(process, {})->evidence.contains("in_nccl"));
}

TEST(NcclCause, EachIsToldWithoutAnUnfilledWord) {
    for (const TextPattern* pattern : all_nccl_texts()) {
        const auto finding = said_of("NCCL error: " + pattern->example);
        if (!finding) {
            continue;
        }
        EXPECT_EQ(finding->title.find('{'), std::string::npos) << finding->title;
        for (const Fix& fix : finding->fixes) {
            EXPECT_EQ((fix.command).find('{'), std::string::npos) << fix.command;
            EXPECT_EQ(fix.command.find("..."), std::string::npos)
                << "a command is to be pasted: " << fix.command;
        }
    }
}

TEST(NcclCause, EachAsksForStatesThatThereAre) {
    Facts facts;
    facts.processes = {failed_of(testing::system_error("x"))};
    const Machine machine;
    const auto c = nccl_case_of(facts, facts.processes.front(), machine);
    ASSERT_TRUE(c);
    const auto states = states_of(*c);
    const std::vector<std::string> slugs{
        "nccl-duplicate-gpu", "nccl-no-interface", "nccl-shm-too-small", "nccl-hang",
        "nccl-version-mix",   "nccl-remote-error", "nccl-cuda-error",    "nccl-system-error"};
    ASSERT_GT(all_nccl_causes().size(), 10U);
    for (const NcclCause* cause : all_nccl_causes()) {
        EXPECT_EQ(std::count(slugs.begin(), slugs.end(), cause->slug), 1) << cause->slug;
        for (const NcclRemedy& remedy : cause->remedies) {
            for (const std::string& name : remedy.when) {
                EXPECT_EQ(states.count(name.front() == '!' ? name.substr(1) : name), 1U) << name;
            }
        }
    }
}

TEST(NcclTable, RefusesATextOfAnUnknownCause) {
    const char* json =
        R"({"results": [{"code": "2", "name": "ncclSystemError"}], "results_source": "s",
            "texts": [{"name": "n", "contains": "a", "pattern": "a", "values": {"cause": "c"},
                       "example": "a", "source": "s"}],
            "causes": [{"name": "d", "slug": "s", "title": "t", "meaning": "m", "limits": "l",
                        "source": "s"}]})";
    try {
        parse_nccl_texts(json);
        FAIL() << "accepted";
    } catch (const std::exception& error) {
        EXPECT_TRUE(testing::holds(error.what(), "names the cause 'c'")) << error.what();
    }
}

}  // namespace
}  // namespace cudiag
