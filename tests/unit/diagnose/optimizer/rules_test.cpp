#include "diagnose/optimizer/rules.h"

#include <gtest/gtest.h>

#include "diagnose/optimizer/analyse.h"
#include "tests/unit/diagnose/optimizer/made_profile.h"

namespace cudiag {
namespace {

// A case whose parts may be changed before a rule is asked.
struct Made {
    explicit Made(const MadeTraining& of = {})
        : recorded{made(of)}, profile{analyse(recorded, {})} {
        process.pid = process.root_pid = recorded.pid;
        process.argv = {"python", "finetune.py"};
    }

    ProfileCase rules() const { return {profile, recorded, facts, process, machine}; }

    Optimizer& optimizer() { return profile.optimizers.at(0); }

    RecordedProfile recorded;
    Profile profile;
    Facts facts;
    Process process;
    Machine machine;
};

// Foreach on 1e9 elements, 22 of 70 ms; this card's fused step takes 8.
Made foreach_run() {
    MadeTraining of;
    of.kernels = 20;
    of.kernel_ns = 1'100'000;
    of.period_ns = 70'000'000;
    of.forward_kernels = 40;
    of.forward_ns = 1'150'000;
    Made run{of};
    run.optimizer().fused_ms = 8.1;
    run.optimizer().fused_error = 0.05;
    run.optimizer().limit_ms = 6.7;
    return run;
}

TEST(OptimizerProfile, TellsWhereTheTimeGoes) {
    Made run = foreach_run();
    const auto findings = optimizer_profile(run.rules());
    ASSERT_EQ(findings.size(), 1U);
    const Finding& note = findings[0];
    EXPECT_EQ(note.severity, Severity::note);
    EXPECT_EQ(note.title,
              "AdamW (foreach), 100 parameters, 1.0e9 elements: 22.2 ms a step, 32 % of the step, "
              "20 kernels; this card's limit is 6.7 ms");
    EXPECT_EQ(note.evidence["records"]["lost_by_cupti"], 0);
    EXPECT_EQ(note.evidence["moved_bytes"], 28'000'000'000U);
    EXPECT_EQ(note.evidence["training_step_ms"], 70);
    EXPECT_EQ(note.evidence["busy_percent"], 97);
    EXPECT_TRUE(note.fixes.empty());
    EXPECT_EQ(note.limits, "");
}

TEST(OptimizerProfile, SaysThatTheCardWasNotMeasuredAndWhatWasLost) {
    Made run = foreach_run();
    run.optimizer().fused_ms = std::nullopt;
    run.profile.completeness.dropped = std::nullopt;
    const Finding note = optimizer_profile(run.rules()).at(0);
    ASSERT_EQ(note.fixes.size(), 1U);
    EXPECT_EQ(note.fixes[0].command, "cudiag bench adam");
    EXPECT_EQ(note.evidence["records"]["lost_by_cupti"], "unknown");
    EXPECT_EQ(note.limits, "not all that the GPU did was recorded");
}

TEST(OptimizerProfile, SaysThatNoStepWasSeen) {
    Made run;
    run.profile.optimizers.clear();
    run.recorded.lacks.push_back(
        {.text = "this torch is too old", .call = "steps", .error = 0, .cupti = ""});
    EXPECT_EQ(optimizer_profile(run.rules()).at(0).title,
              "no step of an optimizer was seen: this torch is too old");
}

TEST(OptimizerNotFused, TellsWhatFusedSavesOnThisCard) {
    Made run = foreach_run();
    const auto finding = optimizer_not_fused(run.rules(), run.optimizer());
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->severity, Severity::warning);
    EXPECT_EQ(finding->confidence, Confidence::likely);
    EXPECT_EQ(finding->title,
              "AdamW (foreach) takes 22.2 ms of each 70.0 ms step; fused=True takes 8.1 ms on this "
              "card: 14.1 ms (20 %) less a step");
    EXPECT_EQ(finding->evidence["error_percent"], 5);
    EXPECT_NE(finding->fixes.at(0).text.find("torch.optim.AdamW(..., fused=True)"),
              std::string::npos);
}

TEST(OptimizerNotFused, IsSilentWithoutAMeasurementOnThisCard) {
    Made run = foreach_run();
    run.optimizer().fused_ms = std::nullopt;
    EXPECT_FALSE(optimizer_not_fused(run.rules(), run.optimizer()));
}

TEST(OptimizerNotFused, IsSilentWhereTheHostDecides) {
    MadeTraining of;  // 85 % busy, but for the update the GPU waits most of the time
    of.kernels = 20;
    of.kernel_ns = 20'000;
    of.gap_ns = 60'000;
    of.forward_kernels = 7;
    Made waits{of};
    waits.optimizer().fused_ms = 0.1;
    waits.optimizer().fused_error = 0.05;
    EXPECT_FALSE(optimizer_not_fused(waits.rules(), waits.optimizer()));

    Made idle = foreach_run();  // and here the whole training step is the host's
    idle.optimizer().busy_share = 0.4;
    EXPECT_FALSE(optimizer_not_fused(idle.rules(), idle.optimizer()));

    Made debugged = foreach_run();
    debugged.optimizer().debugger = "pydevd";
    EXPECT_FALSE(optimizer_not_fused(debugged.rules(), debugged.optimizer()));

    Made sharded = foreach_run();
    sharded.optimizer().tensor_types = {"DTensor"};
    EXPECT_FALSE(optimizer_not_fused(sharded.rules(), sharded.optimizer()));
}

TEST(OptimizerNotFused, IsSilentWhereThereIsNothingToGain) {
    Made fused = foreach_run();
    fused.optimizer().implementation = Implementation::fused;
    EXPECT_FALSE(optimizer_not_fused(fused.rules(), fused.optimizer()));

    Made close = foreach_run();  // by more than the prediction may be wrong, but for nothing much
    close.optimizer().fused_ms = 20.8;
    EXPECT_FALSE(optimizer_not_fused(close.rules(), close.optimizer()));

    Made tiny = foreach_run();
    tiny.optimizer().kernels_a_step = 10'000;
    EXPECT_FALSE(optimizer_not_fused(tiny.rules(), tiny.optimizer()));
}

Made launches_run(std::uint64_t gap) {
    MadeTraining of;
    of.kernels = 100;
    of.kernel_ns = 3'000;
    of.gap_ns = gap;
    return Made{of};
}

TEST(OptimizerLaunchBound, TellsThatTheGpuWaits) {
    Made run = launches_run(9'000);
    const auto finding = optimizer_launch_bound(run.rules(), run.optimizer());
    ASSERT_TRUE(finding);
    EXPECT_EQ(
        finding->title,
        "AdamW (foreach) launches 100 kernels of 3 us each, and the GPU waits for them 891 us "
        "of 1.2 ms a step");
    EXPECT_EQ(finding->evidence["mean_gap_us"], 9);
    EXPECT_EQ(finding->evidence["elements_a_parameter"], 10'000'000);
    ASSERT_EQ(finding->fixes.size(), 1U);
    EXPECT_NE(finding->fixes[0].text.find("fused=True"), std::string::npos);
}

TEST(OptimizerLaunchBound, NamesADebuggerFirst) {
    Made run = launches_run(9'000);
    run.optimizer().debugger = "pydevd";
    const auto finding = optimizer_launch_bound(run.rules(), run.optimizer());
    ASSERT_TRUE(finding);
    ASSERT_EQ(finding->fixes.size(), 1U) << "fused=True gives no debugger's time back";
    EXPECT_NE(finding->fixes[0].text.find("pydevd"), std::string::npos);
}

TEST(OptimizerLaunchBound, IsSilentWhereTheGpuComputes) {
    Made dense = launches_run(500);
    EXPECT_FALSE(optimizer_launch_bound(dense.rules(), dense.optimizer()));
    Made few = Made{};
    EXPECT_FALSE(optimizer_launch_bound(few.rules(), few.optimizer()));
    Made small = launches_run(9'000);
    small.optimizer().share = 0.001;
    EXPECT_FALSE(optimizer_launch_bound(small.rules(), small.optimizer()));
}

Made cpu_run() {
    MadeTraining of;
    of.kernels = 0;
    of.period_ns = 500'000'000;
    of.host_ns = 200'000'000;
    of.text =
        "class\tdeepspeed.ops.adam.cpu_adam.DeepSpeedCPUAdam\nparameters\tfloat32\tcpu\t1\t"
        "100000000\nthreads\t1\ncpus\t16";
    Made run{of};
    run.process.environment["OMP_NUM_THREADS"] = "1";
    return run;
}

TEST(OptimizerCpuBound, NamesThreadsAndWhoSetThem) {
    Made run = cpu_run();
    const auto finding = optimizer_cpu_bound(run.rules(), run.optimizer());
    ASSERT_TRUE(finding);
    EXPECT_EQ(
        finding->title,
        "DeepSpeedCPUAdam computes 200 ms of each 500 ms step on the CPU, with 1 thread on 16 "
        "CPUs");
    EXPECT_EQ(finding->evidence["omp_num_threads"], "1");
    EXPECT_EQ(finding->evidence["set_by"], "the environment that the program was started with");
    EXPECT_EQ(finding->evidence["simd"], "unknown");
    ASSERT_EQ(finding->fixes.size(), 1U);
    EXPECT_EQ(finding->fixes[0].command, "OMP_NUM_THREADS=16 python finetune.py");
}

// torch.set_num_threads(1) is torch's alone: DeepSpeed's extension goes by its own libgomp.
TEST(OptimizerCpuBound, KnowsTheThreadsOfAnExtensionByTheEnvironmentAlone) {
    Made run = cpu_run();
    run.optimizer().library = "/cache/cpu_adam/cpu_adam.so";
    auto finding = optimizer_cpu_bound(run.rules(), run.optimizer());
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["threads"], 1);
    EXPECT_EQ(finding->fixes.size(), 1U);
    run.process.environment.erase("OMP_NUM_THREADS");
    finding = optimizer_cpu_bound(run.rules(), run.optimizer());
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->title, "DeepSpeedCPUAdam computes 200 ms of each 500 ms step on the CPU");
    EXPECT_EQ(finding->evidence["threads"], "unknown");
    EXPECT_TRUE(finding->fixes.empty());
    run.optimizer().library.clear();
    EXPECT_EQ(optimizer_cpu_bound(run.rules(), run.optimizer())->fixes.size(), 1U);
}

TEST(OptimizerCpuBound, TellsALauncherThatSetsOneThread) {
    Made run = cpu_run();
    Process root;
    root.pid = 100;
    root.argv = {"torchrun", "finetune.py"};
    run.facts.processes = {root};
    run.process.root_pid = 100;
    run.process.environment["LOCAL_WORLD_SIZE"] = "4";
    const auto finding = optimizer_cpu_bound(run.rules(), run.optimizer());
    ASSERT_TRUE(finding);
    EXPECT_NE(finding->evidence["set_by"].get<std::string>().find("between torchrun and this one"),
              std::string::npos);
    EXPECT_EQ(finding->fixes.at(0).command, "OMP_NUM_THREADS=4 python finetune.py");
}

TEST(OptimizerCpuBound, ProposesNoThreadsThatAreNotThere) {
    Made run = cpu_run();
    run.optimizer().cpu_threads = 16;
    run.optimizer().simd = "scalar";
    run.optimizer().library = "/cache/cpu_adam/cpu_adam.so";
    const auto finding = optimizer_cpu_bound(run.rules(), run.optimizer());
    ASSERT_TRUE(finding);
    ASSERT_EQ(finding->fixes.size(), 1U);
    EXPECT_NE(finding->fixes[0].command.find("rm -r /cache/cpu_adam"), std::string::npos);
}

TEST(OptimizerCpuBound, IsSilentWhereTheUpdateIsShort) {
    Made run = cpu_run();
    run.optimizer().share = 0.1;
    EXPECT_FALSE(optimizer_cpu_bound(run.rules(), run.optimizer()));
    Made device;
    EXPECT_FALSE(optimizer_cpu_bound(device.rules(), device.optimizer()));
}

TEST(OptimizerJitFirstStep, TellsWhatTheFirstStepDid) {
    MadeTraining of;
    of.first_ns = 812'000'000;
    Made run{of};
    run.optimizer().first->loading = 700'000'000;
    run.optimizer().first->loads = 12;
    const auto finding = optimizer_jit_first_step(run.rules(), run.optimizer());
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->severity, Severity::note);
    EXPECT_EQ(
        finding->title,
        "the first step of AdamW took 812 ms, the others 200 us: 700 ms went into loading its "
        "kernels");
    EXPECT_EQ(finding->evidence["loads"], 12);
}

TEST(OptimizerJitFirstStep, IsSilentOfAFirstStepLikeTheOthers) {
    Made run;
    EXPECT_FALSE(optimizer_jit_first_step(run.rules(), run.optimizer()));
    MadeTraining of;
    of.first_ns = 30'000'000;  // far longer than the rest, but nobody minds
    Made shorter{of};
    EXPECT_FALSE(optimizer_jit_first_step(shorter.rules(), shorter.optimizer()));
}

TEST(ProfileSeatTaken, NamesWhoHasIt) {
    Made run;
    run.recorded.lacks.push_back({.text = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
                                  .call = "cuptiActivityEnable",
                                  .error = 39,
                                  .cupti = "/x/libcupti.so.13"});
    run.recorded.clients.push_back({.call = "cuptiSubscribe_v2",
                                    .module = "/y/libother.so",
                                    .offset = 1,
                                    .error = 0,
                                    .time_ns = 1});
    run.profile.completeness.device_timeline = false;
    const auto finding = profile_seat_taken(run.rules());
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->severity, Severity::warning);
    EXPECT_EQ(finding->title, "CUPTI refused to record: libother.so has it");
    EXPECT_EQ(finding->evidence["records"], "unknown");
    EXPECT_EQ(finding->evidence["clients"][0]["call"], "cuptiSubscribe_v2");
}

TEST(ProfileSeatTaken, SeesThatNoRecordCame) {
    Made run;
    run.profile.completeness.records = 0;
    const auto finding = profile_seat_taken(run.rules());
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->confidence, Confidence::likely) << "nobody was seen taking it";
    EXPECT_NE(finding->title.find("350 launches were made"), std::string::npos) << finding->title;
}

TEST(ProfileSeatTaken, IsSilentBesideAClientThatShares) {
    Made run;
    run.recorded.clients.push_back({.call = "cuptiSubscribe",
                                    .module = "/t/libtorch_cpu.so",
                                    .offset = 0,
                                    .error = 0,
                                    .time_ns = 0});
    EXPECT_FALSE(profile_seat_taken(run.rules()));
    EXPECT_FALSE(profile_not_permitted(run.rules()));
}

TEST(ProfileNotPermitted, NamesTheDriversSettingAndTheUser) {
    Made run;
    run.recorded.lacks.push_back({.text = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
                                  .call = "cuptiActivityRegisterCallbacks",
                                  .error = 35,
                                  .cupti = ""});
    run.machine.profiling_admin_only = "1";
    run.machine.container = "docker";
    run.machine.uid = 1000;
    run.machine.effective_capabilities = "0000000000000000";
    const auto finding = profile_not_permitted(run.rules());
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence["profiling_admin_only"], "1");
    EXPECT_EQ(finding->evidence["uid"], 1000U);
    EXPECT_EQ(finding->fixes.size(), 2U);
    run.machine.profiling_admin_only = "0";
    EXPECT_TRUE(profile_not_permitted(run.rules())->fixes.empty()) << "it is something else then";
}

}  // namespace
}  // namespace cudiag
