#include <gtest/gtest.h>

#include "diagnose/optimizer/analyse.h"
#include "present/grouped.h"
#include "present/perfetto.h"
#include "present/profile_block.h"
#include "present/profile_charts.h"
#include "present/profile_html.h"
#include "present/profile_text.h"
#include "present/tensorboard.h"
#include "tests/present/made_profile.h"
#include "tests/unit/diagnose/optimizer/made_profile.h"

namespace cudiag {
namespace {

using testing::made_profile;

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
        ++found;
    }
    return found;
}

TEST(NanosecondsText, KeepsThreeDigitsThatCount) {
    EXPECT_EQ(nanoseconds_text(0), "0 ns");
    EXPECT_EQ(nanoseconds_text(840), "840 ns");
    EXPECT_EQ(nanoseconds_text(999.6), "1.00 µs");
    EXPECT_EQ(nanoseconds_text(12'345), "12.3 µs");
    EXPECT_EQ(nanoseconds_text(6'658'000), "6.66 ms");
    EXPECT_EQ(nanoseconds_text(999'999), "1.00 ms");
    EXPECT_EQ(nanoseconds_text(123'400'000), "123 ms");
    EXPECT_EQ(nanoseconds_text(2.5e9), "2.50 s");
}

TEST(Grouped, SetsCommas) {
    EXPECT_EQ(grouped(0), "0");
    EXPECT_EQ(grouped(999), "999");
    EXPECT_EQ(grouped(1000), "1,000");
    EXPECT_EQ(grouped(1'000'000'000), "1,000,000,000");
}

TEST(TypicalStep, IsTheOneNearestToTheMedian) {
    Profile profile = made_profile();
    const auto step = typical_step(profile, 0);
    ASSERT_TRUE(step);
    EXPECT_NE(*step, 0U);  // the first is slow
    for (OptimizerStep& each : profile.steps) {
        each.profiled = false;
    }
    EXPECT_FALSE(typical_step(profile, 0));
}

TEST(Escaped, LetsNoMarkupThrough) {
    EXPECT_EQ(escaped("<b> & \"c\" 'd'"), "&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
    EXPECT_EQ(escaped("a\033[31mb").find('\033'), std::string::npos);
}

TEST(StepsChart, HasABarForEachStepAndMarksWhatIsCut) {
    Profile profile = made_profile();
    EXPECT_EQ(count(steps_chart(profile, 0, Language::english), "class=\"busy\" x="), 40U);
    EXPECT_EQ(count(steps_chart(profile, 0, Language::english), "class=\"cut\" x="), 0U);
    profile.steps[0].device_end += 200'000'000;
    EXPECT_EQ(count(steps_chart(profile, 0, Language::english), "class=\"cut\" x="), 1U);
}

TEST(StepsChart, SharesBarsAmongManySteps) {
    Profile profile = made_profile();
    const std::vector<OptimizerStep> steps = profile.steps;
    for (int i = 0; i < 99; ++i) {
        profile.steps.insert(profile.steps.end(), steps.begin(), steps.end());
    }
    const std::size_t bars = count(steps_chart(profile, 0, Language::english), "class=\"busy\" x=");
    EXPECT_LE(bars, 240U);
    EXPECT_GE(bars, 120U);
}

TEST(StepsChart, SaysSoWithoutSteps) {
    Profile profile = made_profile();
    profile.steps.clear();
    EXPECT_NE(steps_chart(profile, 0, Language::english).find("No step was recorded"),
              std::string::npos);
}

TEST(StepsChart, StandsStepsWithoutAnyTime) {
    Profile profile = made_profile();
    for (OptimizerStep& step : profile.steps) {
        step.device_end = step.device_begin;
        step.device_busy = step.gaps = 0;
    }
    profile.optimizers[0].span = {};
    EXPECT_EQ(steps_chart(profile, 0, Language::english).find("nan"), std::string::npos);
    EXPECT_EQ(timeline_chart(profile, 5, Language::english).find("nan"), std::string::npos);
    EXPECT_EQ(timeline_chart(profile, 5, Language::english).find("inf"), std::string::npos);
}

TEST(TimelineChart, HasALaneForEachStreamAndALegend) {
    const std::string chart = timeline_chart(made_profile(), 5, Language::english);
    EXPECT_EQ(count(chart, "class=\"lane\""), 2U);
    EXPECT_NE(chart.find("GPU 0, stream 7"), std::string::npos);
    EXPECT_NE(chart.find("Lerp&gt;(…), 14.4 ms"), std::string::npos) << chart;
    EXPECT_NE(chart.find("class=\"rest\" x="), std::string::npos);  // the model's kernel before
}

TEST(TimelineChart, DrawsNeighboursAsOne) {
    Profile profile = made_profile();
    const std::size_t boxes = count(timeline_chart(profile, 5, Language::english), "<rect");
    const DeviceOperation first = profile.operations[5 * 14 + 1];
    for (std::uint64_t i = 0; i < 5000; ++i) {
        DeviceOperation tiny = first;
        tiny.stream = 11;
        tiny.begin = first.begin + i * 100;
        tiny.end = tiny.begin + 90;
        profile.operations.push_back(tiny);
    }
    EXPECT_EQ(count(timeline_chart(profile, 5, Language::english), "<rect"), boxes + 1);
}

TEST(RooflineChart, ComparesWithWhatWasMeasured) {
    const Profile profile = made_profile();
    const std::string chart = roofline_chart(profile, profile.optimizers[0], Language::english);
    EXPECT_NE(chart.find("4230 GB/s, 100 %"), std::string::npos) << chart;
    EXPECT_NE(chart.find("4204 GB/s, 99 %"), std::string::npos) << chart;
    EXPECT_NE(chart.find("3474 GB/s, 82 %"), std::string::npos) << chart;
    EXPECT_NE(chart.find("28,000,000,000 bytes"), std::string::npos);
}

TEST(RooflineChart, SaysHowToMeasureACardThatIsNotKnown) {
    Profile profile = made_profile();
    profile.devices.clear();
    profile.optimizers[0].fused_ms.reset();
    profile.optimizers[0].limit_ms.reset();
    const std::string chart = roofline_chart(profile, profile.optimizers[0], Language::english);
    EXPECT_NE(chart.find("cudiag bench adam"), std::string::npos);
    EXPECT_EQ(count(chart, "class=\"bar\""), 1U);
    profile.optimizers[0].traffic.known = false;
    EXPECT_EQ(roofline_chart(profile, profile.optimizers[0], Language::english), "");
}

TEST(ProfileHtml, LoadsNothingAndNamesWhatItShows) {
    const std::string page = profile_html({made_profile()}, "run <1>", Language::english);
    EXPECT_EQ(page.find("<script"), std::string::npos);
    EXPECT_EQ(page.find("http"), std::string::npos);
    EXPECT_EQ(page.find("url("), std::string::npos);
    EXPECT_NE(page.find("prefers-color-scheme"), std::string::npos);
    EXPECT_NE(page.find("run &lt;1&gt;"), std::string::npos);
    EXPECT_NE(page.find("AdamW (foreach)"), std::string::npos);
    EXPECT_NE(page.find("Nothing is missing."), std::string::npos);
    EXPECT_EQ(count(page, "<svg"), count(page, "aria-label"));
}

TEST(ProfileHtml, SaysWhatItLacks) {
    Profile profile = made_profile();
    profile.completeness = {};
    profile.completeness.why_not = "no libcupti for CUDA 13 was found";
    profile.operations.clear();
    profile.steps.clear();
    profile.optimizers[0].steady_steps = 0;
    const std::string page = profile_html({profile}, "run", Language::english);
    EXPECT_NE(page.find("no libcupti for CUDA 13 was found"), std::string::npos);
    EXPECT_NE(page.find("No steady step"), std::string::npos);
    EXPECT_NE(profile_html({}, "run", Language::english).find("</html>"), std::string::npos);
}

TEST(ProfileHtml, IsToldInChinese) {
    const std::string page = profile_html({made_profile()}, "1a2b-99", Language::chinese);
    EXPECT_NE(page.find("<html lang=\"zh-CN\">"), std::string::npos);
    EXPECT_NE(page.find("<title>1a2b-99 的优化器 profile</title>"), std::string::npos);
    EXPECT_NE(page.find("<th scope=\"col\">kernel 或拷贝</th>"), std::string::npos);
    EXPECT_NE(page.find("aria-label=\"GPU 0，stream 7 上的操作\""), std::string::npos);
    EXPECT_NE(page.find("<title>第 5 步：忙 23.4 ms，空闲 600 µs</title>"), std::string::npos);
    EXPECT_NE(page.find("cuda:0 上 310 个张量，共 1,000,000,000 个 float32 元素"),
              std::string::npos);
    EXPECT_NE(page.find(">拷贝：设备到设备</td>"), std::string::npos);
    // Names are the same in every language.
    EXPECT_NE(page.find("<h2>AdamW (foreach)</h2>"), std::string::npos);
    EXPECT_NE(
        page.find("multi_tensor_apply_kernel&lt;TensorListMetadata&lt;2&gt;, Lerp&gt;(…)</td>"),
        std::string::npos);
}

TEST(ProfileHtml, SaysInChineseWhatItLacks) {
    Profile profile = made_profile();
    profile.completeness = {};
    profile.completeness.why_not = say("no kernel was launched");
    profile.devices.clear();
    const std::string page = profile_html({profile}, "run", Language::chinese);
    EXPECT_NE(page.find("<p>没有记录设备的时间线：没有 launch 过 kernel</p>"), std::string::npos);
    EXPECT_NE(page.find("用这条命令测量： <code>cudiag bench adam</code>"), std::string::npos);
}

// The recorder has libc alone: its words are told in the user's language when they are read.
TEST(ProfileHtml, TellsTheRecordersWordsInChinese) {
    RecordedProfile recorded = made();
    recorded.windows.clear();
    recorded.lacks.push_back({.text = "no libcupti that fits the CUDA of this process was found",
                              .call = "",
                              .error = 0,
                              .cupti = ""});
    const std::string page = profile_html({analyse(recorded, {})}, "run", Language::chinese);
    EXPECT_NE(page.find("没有记录设备的时间线：没有找到与这个进程的 CUDA 相配的 libcupti"),
              std::string::npos);
}

TEST(ProfileHtml, SaysWhoElseRecordedAndWhatHasAnotherClock) {
    Profile profile = made_profile();
    profile.completeness.out_of_range = 1200;
    profile.completeness.shared_with_client = true;
    profile.completeness.clients = {"libtorch_cpu.so", "libother.so"};
    profile.optimizers[0].busy_share = 0.9;
    const std::string page = profile_html({profile}, "run", Language::english);
    EXPECT_NE(page.find("1,200 records have times of another clock"), std::string::npos);
    EXPECT_NE(page.find("Clients of CUPTI: libtorch_cpu.so, libother.so."), std::string::npos);
    EXPECT_NE(page.find("<b>90 %</b>of a training step the GPU is busy"), std::string::npos);
    EXPECT_EQ(page.find("Nothing is missing."), std::string::npos);
}

TEST(ProfileHtml, DoesNotCallALostCountComplete) {
    Profile profile = made_profile();
    profile.completeness.dropped.reset();
    const std::string page = profile_html({profile}, "run", Language::english);
    EXPECT_NE(page.find("an unknown number"), std::string::npos);
    EXPECT_EQ(page.find("Nothing is missing."), std::string::npos);
}

TEST(TensorboardEvents, HaveTheChecksumsOfTheFormat) {
    const std::string events = tensorboard_events({});
    // The length 24 and its masked CRC-32C, as TensorFlow writes for the first event of every file.
    EXPECT_EQ(events.substr(0, 12), std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
    EXPECT_NE(events.find("brain.Event:2"), std::string::npos);
    EXPECT_EQ(events.size(), 12U + 24U + 4U);
}

TEST(TensorboardEvents, TellSeveralOptimizersApart) {
    Profile profile = made_profile();
    profile.optimizers.push_back(profile.optimizers[0]);
    profile.steps[3].optimizer = 1;
    const std::string events = tensorboard_events({profile});
    EXPECT_NE(events.find("0: AdamW/host_ms"), std::string::npos);
    EXPECT_NE(events.find("1: AdamW/host_ms"), std::string::npos);
    EXPECT_NE(tensorboard_events({profile, profile}).find("process 4242/1: AdamW/host_ms"),
              std::string::npos);
}

TEST(PerfettoTrace, GivesOverlappingOperationsTracksOfTheirOwn) {
    Profile profile = made_profile();
    const std::string name = "GPU 0, stream 7";
    EXPECT_EQ(count(perfetto_trace({profile}), name), 1U);
    DeviceOperation inside = profile.operations[0];
    inside.begin += 10;
    inside.end += 10;
    profile.operations.insert(profile.operations.begin() + 1, inside);
    EXPECT_EQ(count(perfetto_trace({profile}), name), 2U);
}

TEST(RenderProfile, SaysHowBusyTheGpuIsAndWhoElseRecorded) {
    const std::string block = render_profile(made_profile(), {.width = 400}, "");
    EXPECT_NE(block.find("34 % of a training step of 70.0 ms, in which the GPU is busy for 90 %"),
              std::string::npos)
        << block;
    EXPECT_NE(
        block.find("another profiler recorded at the same time; clients of CUPTI: libtorch_cpu.so"),
        std::string::npos)
        << block;
}

TEST(ShortKernel, KeepsWhatTellsKernelsApart) {
    EXPECT_EQ(short_kernel("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::"
                           "native::(anonymous namespace)::TensorListMetadata<2>, LerpFunctor<"
                           "float> >(int, float)"),
              "multi_tensor_apply_kernel<TensorListMetadata<2>, LerpFunctor<float> >");
    EXPECT_EQ(short_kernel("copy host to device"), "copy host to device");
    EXPECT_EQ(short_kernel("f(int)"), "f");
    EXPECT_EQ(short_kernel(std::string(200, 'k')), std::string(100, 'k') + "…");
    EXPECT_EQ(short_kernel("odd>>(("), "odd>>((");
}

}  // namespace
}  // namespace cudiag
