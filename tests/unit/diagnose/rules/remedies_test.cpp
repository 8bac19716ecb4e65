#include <gtest/gtest.h>

#include "diagnose/loader/library_path.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/loader/symbol_owner.h"

namespace cudiag {
namespace {

TEST(LibraryPath, DropsEmptyEntriesThatMeanTheCurrentDirectory) {
    EXPECT_EQ(library_path_entries(":/a::/b;/c:"), (std::vector<std::string>{"/a", "/b", "/c"}));
    EXPECT_TRUE(library_path_entries("").empty());
}

TEST(LibraryPath, PutsADirectoryInFront) {
    EXPECT_EQ(with_directory("", "/a"), "/a");
    EXPECT_EQ(with_directory("/b:/c", "/a"), "/a:/b:/c");
}

TEST(LibraryPath, TakesEverySpellingOfADirectoryOut) {
    EXPECT_EQ(without_directory("/usr/lib:/a:/usr/../usr/lib/", "/usr/lib"), "/a");
    EXPECT_EQ(without_directory("/usr/lib", "/usr/lib"), "");
    EXPECT_EQ(without_directory("/a:/b", "/usr/lib"), "/a:/b");
}

TEST(ShellQuoted, LeavesPlainWordsAlone) {
    EXPECT_EQ(shell_quoted("nvidia-nccl-cu13==2.29.7"), "nvidia-nccl-cu13==2.29.7");
    EXPECT_EQ(shell_quoted("/a/b_c+d"), "/a/b_c+d");
}

TEST(ShellQuoted, QuotesWhatAShellWouldTakeApart) {
    EXPECT_EQ(shell_quoted("a b"), "'a b'");
    EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
    EXPECT_EQ(shell_quoted("x; rm -r $HOME"), "'x; rm -r $HOME'");
    EXPECT_EQ(shell_quoted("pkg>=1,<2"), "'pkg>=1,<2'");
    EXPECT_EQ(shell_quoted(""), "''");
    EXPECT_EQ(shell_quoted("a\nb"), "'a\nb'");
}

TEST(SymbolOwner, KnowsTorchByItsNamespaces) {
    const SymbolOwner* owner = symbol_owner(
        "c10::cuda::c10_cuda_check_implementation(int, char const*, char const*, int, bool)");
    ASSERT_NE(owner, nullptr);
    EXPECT_EQ(owner->family, "torch");
    EXPECT_EQ(symbol_owner("vtable for c10::Error")->family, "torch");
}

TEST(SymbolOwner, TellsLibrariesWithACommonPrefixApart) {
    EXPECT_EQ(symbol_owner("cublasLtMatmul")->family, "cublasLt");
    EXPECT_EQ(symbol_owner("cublasGemmEx")->family, "cublas");
    EXPECT_EQ(symbol_owner("cusparseLtInit")->family, "cusparseLt");
    EXPECT_EQ(symbol_owner("cudaMalloc")->family, "cudart");
    EXPECT_EQ(symbol_owner("cuMemAlloc_v2")->family, "cuda");
    EXPECT_EQ(symbol_owner("__nvJitLinkComplete_12_4")->family, "nvJitLink");
}

TEST(SymbolOwner, IsSilentForEverybodyElsesSymbols) {
    for (const char* name : {"cget_col_row_stats", "main", "std::string::size() const",
                             "cutlass_gemm", "curl_easy_init"}) {
        EXPECT_EQ(symbol_owner(name), nullptr) << name;
    }
}

}  // namespace
}  // namespace cudiag
