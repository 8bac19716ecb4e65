#include "diagnose/knowledge/gpu_faults.h"

#include <gtest/gtest.h>

#include <regex>

#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/gpu_fault_tables.h"
#include "diagnose/knowledge/tables.h"

namespace cudiag {
namespace {

const std::string kFault =
    R"x({"code": "700", "title": "t", "remedies": [{"text": "do", "command": "x {argv}"}], )x"
    R"x("source": "s"})x";
const std::string kHint =
    R"x({"name": "n", "kernel": "gather|scatter", "codes": ["710"], "text": "t", "source": "s"})x";

std::string table_of(const std::string& faults, const std::string& hints) {
    return "{\"faults\": [" + faults + "], \"hints\": [" + hints + "]}";
}

std::string changed(std::string text, const std::string& what, const std::string& with) {
    const auto at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), with);
}

}  // namespace

TEST(GpuFaults, OfThisProgramAreWellFormed) {
    EXPECT_TRUE(gpu_fault_problems().empty());
    EXPECT_GE(all_gpu_faults().size(), 9U);
    EXPECT_GE(all_kernel_hints().size(), 6U);
}

TEST(GpuFaults, AllStickAsTheErrorsSay) {
    for (const GpuFault* fault : all_gpu_faults()) {
        const CudaError* known = cuda_error(fault->code);
        ASSERT_NE(known, nullptr) << fault->code;
        EXPECT_TRUE(known->sticky) << fault->code;
        EXPECT_FALSE(fault->source.empty()) << fault->code;
        EXPECT_FALSE(fault->title.empty()) << fault->code;
    }
}

TEST(GpuFaults, HintsAreOfKnownFaultsAndHaveASource) {
    for (const KernelHint* hint : all_kernel_hints()) {
        EXPECT_FALSE(hint->source.empty()) << hint->name;
        EXPECT_FALSE(hint->text.empty()) << hint->name;
        for (const int code : hint->codes) {
            EXPECT_NE(gpu_fault(code), nullptr) << hint->name << ": " << code;
        }
    }
}

TEST(GpuFaults, PlaceholdersAreOnlyThoseThatAreFilledIn) {
    static const std::regex place{R"(\{[a-z_]+\})"};
    for (const GpuFault* fault : all_gpu_faults()) {
        for (const FaultRemedy& remedy : fault->remedies) {
            std::string rest = remedy.command;
            if (const auto at = rest.find("{argv}"); at != std::string::npos) {
                rest.erase(at, 6);
            }
            EXPECT_FALSE(std::regex_search(rest, place)) << remedy.command;
            EXPECT_FALSE(std::regex_search(remedy.text, place)) << remedy.text;
        }
    }
}

TEST(KernelHint, IsFoundByThePartOfANameAndTheCode) {
    // Names as torch 2.11 has them.
    const std::string loss =
        "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, "
        "float, long>(float*, float*, float const*, long const*, float const*, bool, long, long, "
        "long, long)";
    const KernelHint* hint = kernel_hint(loss, 710);
    ASSERT_NE(hint, nullptr);
    EXPECT_EQ(hint->name, "torch-loss");
    EXPECT_EQ(kernel_hint(loss, 700), nullptr) << "another error has another cause";
    EXPECT_EQ(kernel_hint("axpy(float*, int)", 710), nullptr);
    EXPECT_EQ(kernel_hint("", 710), nullptr);
    const KernelHint* index = kernel_hint("at::native::indexSelectLargeIndex<float>()", 710);
    ASSERT_NE(index, nullptr);
    EXPECT_EQ(index->name, "torch-index");
    // An embedding, and not torch.gather().
    const KernelHint* vectorized =
        kernel_hint("void at::native::vectorized_gather_kernel<16, long>(char*)", 710);
    ASSERT_NE(vectorized, nullptr);
    EXPECT_EQ(vectorized->name, "torch-index");
    const KernelHint* gather =
        kernel_hint("void at::native::_scatter_gather_elementwise_kernel<128, 8>(int)", 710);
    ASSERT_NE(gather, nullptr);
    EXPECT_EQ(gather->name, "torch-gather");
}

TEST(GpuFault, IsNoneOfOtherCodes) {
    ASSERT_NE(gpu_fault(700), nullptr);
    EXPECT_EQ(gpu_fault(0), nullptr);
    EXPECT_EQ(gpu_fault(2), nullptr);
}

TEST(ParseGpuFaults, ReadsWhatIsWellFormed) {
    const GpuFaultTable table = parse_gpu_faults(table_of(kFault, kHint));
    EXPECT_EQ(table.by_code.at(700).remedies.at(0).command, "x {argv}");
    EXPECT_EQ(table.hints.at(0).codes, std::vector<int>{710});
    EXPECT_EQ(table.compiled.size(), 1U);
}

TEST(ParseGpuFaults, RefusesWhatIsMalformed) {
    for (const std::string& bad : {
             std::string{"{"},
             std::string{"{}"},
             table_of("", kHint),
             table_of(kFault, ""),
             table_of(kFault + "," + kFault, kHint),
             table_of(changed(kFault, "\"700\"", "\"seven\""), kHint),
             table_of(changed(kFault, "\"700\"", "\"70000\""), kHint),
             table_of(changed(kFault, "\"700\"", "700"), kHint),
             table_of(changed(kFault, "\"source\": \"s\"", "\"source\": \"\""), kHint),
             table_of(changed(kFault, "\"title\"", "\"titel\""), kHint),
             table_of(changed(kFault, "\"command\"", "\"comand\""), kHint),
             table_of(kFault, changed(kHint, "gather|scatter", "(gather")),
             table_of(kFault, changed(kHint, "[\"710\"]", "[]")),
             table_of(kFault, changed(kHint, "\"710\"", "\"-1\"")),
             table_of(kFault, changed(kHint, ", \"source\": \"s\"", "")),
             table_of(kFault, changed(kHint, "\"name\"", "\"more\": \"x\", \"name\"")),
         }) {
        EXPECT_THROW(parse_gpu_faults(bad), KnowledgeError) << bad;
    }
}

}  // namespace cudiag
