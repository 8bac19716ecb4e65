#include "diagnose/loader/error_text.h"

#include <gtest/gtest.h>

namespace cudiag {
namespace {

TEST(LoaderErrorText, NamesTheLibraryThatIsMissing) {
    const LoaderError error = parse_loader_error(
        "libcudart.so.12: cannot open shared object file: No such file or directory");
    EXPECT_EQ(error.form, ErrorForm::missing_file);
    EXPECT_EQ(error.subject, "libcudart.so.12");
}

TEST(LoaderErrorText, TellsAVersionedSymbolInParts) {
    const LoaderError error = parse_loader_error(
        "/v/libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version "
        "libnvJitLink.so.12");
    EXPECT_EQ(error.form, ErrorForm::undefined_symbol);
    EXPECT_EQ(error.subject, "/v/libcusparse.so.12");
    EXPECT_EQ(error.symbol, "__nvJitLinkComplete_12_4");
    EXPECT_EQ(error.version, "libnvJitLink.so.12");
}

TEST(LoaderErrorText, TellsWhoLacksAVersionFromWhoWantsIt) {
    const LoaderError error = parse_loader_error(
        "/lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by "
        "/t/libtorch_python.so)");
    EXPECT_EQ(error.form, ErrorForm::missing_version);
    EXPECT_EQ(error.provider, "/lib/libstdc++.so.6");
    EXPECT_EQ(error.version, "GLIBCXX_3.4.30");
    EXPECT_EQ(error.subject, "/t/libtorch_python.so");
}

TEST(LoaderErrorText, KnowsEveryFormOfTheDataFile) {
    EXPECT_EQ(parse_loader_error("/x: cannot open shared object file: Permission denied").form,
              ErrorForm::cannot_open);
    EXPECT_EQ(parse_loader_error("/x: wrong ELF class: ELFCLASS32").form, ErrorForm::wrong_class);
    EXPECT_EQ(parse_loader_error("/x: file too short").form, ErrorForm::not_elf);
    EXPECT_EQ(parse_loader_error("/x: invalid ELF header").form, ErrorForm::not_elf);
    EXPECT_EQ(parse_loader_error("/x: failed to map segment from shared object").form,
              ErrorForm::cannot_map);
    EXPECT_EQ(parse_loader_error("/x: cannot allocate memory in static TLS block").form,
              ErrorForm::static_tls);
    EXPECT_EQ(parse_loader_error("/x: no version information available (required by /y)").form,
              ErrorForm::no_version_information);
}

TEST(LoaderErrorText, GivesAnUnknownTextBackWhole) {
    for (const std::string text :
         {"", "hello", "a: b: c", "libx.so: cannot open\nshared object file"}) {
        const LoaderError error = parse_loader_error(text);
        EXPECT_EQ(error.form, ErrorForm::unknown);
        EXPECT_EQ(error.detail, text);
    }
}

TEST(LoaderErrorText, SurvivesATextOfAMegabyte) {
    EXPECT_EQ(parse_loader_error(std::string(1 << 20, 'x')).form, ErrorForm::unknown);
}

}  // namespace
}  // namespace cudiag
