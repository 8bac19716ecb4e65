#include "diagnose/knowledge/cuda_figures.h"

#include <gtest/gtest.h>

#include "diagnose/knowledge/cuda_figure_tables.h"
#include "diagnose/knowledge/tables.h"

namespace cudiag {
namespace {

std::string table_with(const std::string& entry) {
    return R"({"figures": [)" + entry + "]}";
}

const std::string kGood =
    R"x({"name": "a", "contains": "asked", "pattern": "asked (\\d+ bytes)", "groups": ["asked"], )x"
    R"x("example": "asked 7 bytes", "source": "here"})x";

std::string without(std::string text, const std::string& what, const std::string& with) {
    return text.replace(text.find(what), what.size(), with);
}

}  // namespace

TEST(CudaFigures, OfThisProgramAreWellFormedAndHaveASource) {
    EXPECT_TRUE(cuda_figure_problems().empty());
    EXPECT_GE(all_figure_patterns().size(), 13U);
    for (const TextPattern* pattern : all_figure_patterns()) {
        EXPECT_FALSE(pattern->source.empty()) << pattern->name;
    }
}

TEST(CudaFigures, OfMemoryAllReadAsAmounts) {
    for (const TextPattern* pattern : all_figure_patterns()) {
        for (const TextValues& values : figures_of(pattern->example)) {
            for (const auto& [key, value] : values) {
                if (key != "process" && key.rfind("ptx", 0) != 0) {
                    EXPECT_TRUE(bytes_in(value)) << pattern->name << ": " << value;
                }
            }
        }
    }
}

TEST(CudaFigures, AreFoundAsOftenAsTheyStandThere) {
    const auto found = figures_of(
        "Process 7 has 1.00 GiB memory in use. Process 8 has 2.00 GiB memory in use.\n"
        "Process 9 has 3.00 GiB memory in use.");
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[1].at("process"), "8");
    EXPECT_EQ(found[2].at("used_by_process"), "3.00 GiB");
}

TEST(CudaFigures, AreFoundBehindALongLog) {
    const std::string log(300'000, 'x');
    EXPECT_EQ(figures_of(log + "Tried to allocate 2.00 GiB. " + log).size(), 1U);
    std::string many;
    for (int i = 0; i < 1000; ++i) {
        many += "Tried to allocate 2.00 GiB. ";
    }
    EXPECT_EQ(figures_of(many).size(), 64U);
}

TEST(CudaFigures, NothingIsFoundInOtherWords) {
    EXPECT_TRUE(figures_of("").empty());
    EXPECT_TRUE(figures_of("Tried to allocate much. Process x has 1.00 GiB memory in use").empty());
}

TEST(BytesIn, ReadsEveryUnit) {
    EXPECT_EQ(bytes_in("0 bytes"), 0U);
    EXPECT_EQ(bytes_in("512 bytes"), 512U);
    EXPECT_EQ(bytes_in("1,600,000,000 bytes"), 1'600'000'000U);
    EXPECT_EQ(bytes_in("1.50 KiB"), 1536U);
    EXPECT_EQ(bytes_in("2.00 MiB"), 2U << 20);
    EXPECT_EQ(bytes_in("8.00GiB"), std::uint64_t{8} << 30);
    EXPECT_EQ(bytes_in("1.00 TiB"), std::uint64_t{1} << 40);
    EXPECT_EQ(bytes_in("18446744073709551615 bytes"), UINT64_MAX);
}

TEST(BytesIn, RefusesWhatIsNone) {
    for (const char* text :
         {"", "GiB", "7", "7 GB", "1.2.3 GiB", ".5 GiB", "-1 bytes", "18446744073709551616 bytes",
          "99999999999999.00 TiB", "1 GiB of it"}) {
        EXPECT_FALSE(bytes_in(text)) << text;
    }
}

TEST(ParseCudaFigures, RefusesWhatIsMalformed) {
    EXPECT_EQ(parse_cuda_figures(table_with(kGood)).patterns.size(), 1U);
    for (const std::string& bad :
         {std::string{"{"}, std::string{"{}"}, table_with(kGood + "," + kGood),
          table_with(without(kGood, "\"groups\": [\"asked\"]", "\"groups\": [\"aksed\"]")),
          table_with(without(kGood, "\"groups\": [\"asked\"]", "\"groups\": []")),
          table_with(without(kGood, "(\\\\d+ bytes)", "(\\\\d+")),
          table_with(without(kGood, "asked 7 bytes", "asked for much")),
          table_with(without(kGood, "\"source\": \"here\"", "\"source\": \"\"")),
          table_with(without(kGood, "\"name\"", "\"more\": \"x\", \"name\""))}) {
        EXPECT_THROW(parse_cuda_figures(bad), KnowledgeError) << bad;
    }
}

}  // namespace cudiag
