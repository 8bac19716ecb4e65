#include "diagnose/knowledge/gpu_exceptions.h"

#include <gtest/gtest.h>

#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/gpu_faults.h"
#include "diagnose/knowledge/tables.h"

namespace cudiag {

TEST(GpuExceptions, OfThisProgramAreWellFormedAndHaveASource) {
    EXPECT_TRUE(gpu_exception_problems().empty());
    EXPECT_EQ(all_gpu_exception_kinds().size(), 37U) << "0 to 36, as CUDA 13.1 has them";
    for (const GpuExceptionKind* kind : all_gpu_exception_kinds()) {
        EXPECT_EQ(kind->name.rfind("CUDBG_EXCEPTION_", 0), 0U) << kind->code;
        EXPECT_FALSE(kind->text.empty()) << kind->code;
        EXPECT_FALSE(kind->source.empty()) << kind->code;
    }
}

TEST(GpuExceptions, GiveErrorsThatStick) {
    for (const GpuExceptionKind* kind : all_gpu_exception_kinds()) {
        const CudaError* error = cuda_error(kind->error);
        ASSERT_NE(error, nullptr) << kind->code;
        EXPECT_TRUE(error->sticky) << kind->code;
        EXPECT_NE(gpu_fault(kind->error), nullptr) << kind->code;
    }
}

TEST(GpuExceptions, AreFoundByTheirNumber) {
    ASSERT_NE(gpu_exception_kind(14), nullptr);
    EXPECT_EQ(gpu_exception_kind(14)->name, "CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS");
    EXPECT_EQ(gpu_exception_kind(14)->error, 700);
    EXPECT_EQ(gpu_exception_kind(0xffffffff), nullptr);
}

TEST(ParseGpuExceptions, RefusesWhatIsMalformed) {
    const auto table = [](const std::string& entries) {
        return "{\"exceptions\": [" + entries + "]}";
    };
    const std::string good =
        R"({"code": "1", "name": "N", "text": "t", "error": "700", "source": "s"})";
    EXPECT_EQ(parse_gpu_exceptions(table(good)).size(), 1U);
    for (
        const std::string& bad :
        {std::string{"{"}, std::string{"{}"}, table(good + "," + good),
         table(R"({"code": "x", "name": "N", "text": "t", "error": "700", "source": "s"})"),
         table(R"({"code": "1", "name": "N", "text": "t", "error": "", "source": "s"})"),
         table(R"({"code": "1", "name": "N", "text": "t", "error": "700"})"),
         table(
             R"({"code": "1", "name": "N", "text": "t", "error": "700", "source": "s", "a": 1})")}) {
        EXPECT_THROW(parse_gpu_exceptions(bad), KnowledgeError) << bad;
    }
}

}  // namespace cudiag
