#include "shim/load_error.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace cudiag {
namespace {

bool breakage(const char* asked, const char* text, bool script = false) {
    return is_breakage(asked, parse_load_error(text), script);
}

std::string subject(const char* text) {
    const LoadError error = parse_load_error(text);
    return {error.subject, error.subject_length};
}

constexpr const char* kAbsent = "cannot open shared object file: No such file or directory";

TEST(LoadErrorTest, SubjectIsTheFileThatTheLoaderWasAt) {
    EXPECT_EQ(subject("libcudart.so.12: cannot open shared object file: No such file or directory"),
              "libcudart.so.12");
    EXPECT_EQ(subject("/a b/c.so: undefined symbol: f, version V_1"), "/a b/c.so");
    EXPECT_EQ(subject("invalid namespace: Invalid argument"), "invalid namespace");
    EXPECT_EQ(subject("shared object not open"), "");
    EXPECT_EQ(subject(""), "");
}

TEST(LoadErrorTest, MuslNamesTheFileBehindItsOpeningWords) {
    EXPECT_EQ(subject("Error loading shared library libx.so: No such file or directory"),
              "libx.so");
    EXPECT_EQ(subject("Error relocating /lib/x.so: f: symbol not found"), "/lib/x.so");
}

TEST(LoadErrorTest, TheAbsenceOfWhatWasAskedForIsAProbe) {
    EXPECT_FALSE(breakage("libx.so", (std::string("libx.so: ") + kAbsent).c_str()));
    EXPECT_FALSE(breakage("/a/libx.so", (std::string("/a/libx.so: ") + kAbsent).c_str()));
}

TEST(LoadErrorTest, TheAbsenceOfWhatItNeedsIsBreakage) {
    EXPECT_TRUE(breakage("libx.so", (std::string("libdep.so.1: ") + kAbsent).c_str()));
    EXPECT_TRUE(breakage("/a/libx.so", (std::string("libdep.so.1: ") + kAbsent).c_str()));
    EXPECT_TRUE(breakage("/a/libx.so", (std::string("/b/libx.so: ") + kAbsent).c_str()));
}

TEST(LoadErrorTest, TheAbsenceOfTheDriverIsAProbe) {
    for (const char* driver : {"libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1",
                               "/usr/lib/libcuda.so.1"}) {
        const std::string text = std::string(driver) + ": " + kAbsent;
        EXPECT_FALSE(breakage("/site-packages/x.so", text.c_str())) << driver;
        EXPECT_FALSE(breakage(driver, text.c_str())) << driver;
    }
}

TEST(LoadErrorTest, AFileThatIsThereAndNoGoodIsBreakageWhenNamedByItsPath) {
    EXPECT_TRUE(breakage("/a/x.so", "/a/x.so: invalid ELF header"));
    EXPECT_TRUE(breakage("/a/x.so", "/a/x.so: file too short"));
    EXPECT_TRUE(breakage("/a/x.so", "/a/x.so: cannot open shared object file: Permission denied"));
    EXPECT_TRUE(breakage("/a/x.so", "/a/x.so: undefined symbol: _ZN3c10f"));
    EXPECT_TRUE(breakage("/a/x.so", "/a/x.so: cannot allocate memory in static TLS block"));
}

TEST(LoadErrorTest, AScriptOfTheLinkersIsAProbe) {
    EXPECT_FALSE(breakage("/usr/lib/libc.so", "/usr/lib/libc.so: invalid ELF header", true));
    EXPECT_FALSE(breakage("libc.so", "/usr/lib/libc.so: invalid ELF header"));
}

TEST(LoadErrorTest, ABareNameThatWasFoundAndLacksSomethingIsBreakage) {
    EXPECT_TRUE(breakage("libx.so", "/lib/libx.so: undefined symbol: f"));
    EXPECT_TRUE(breakage("libx.so",
                         "/lib/libc.so.6: version `GLIBC_2.99' not found (required by "
                         "/lib/libx.so)"));
    EXPECT_TRUE(breakage("libx.so", "/lib/libx.so: cannot allocate memory in static TLS block"));
}

TEST(LoadErrorTest, ModulesOfPythonAreKnownByTheirNames) {
    for (const char* name : {"/usr/lib/python3.12/lib-dynload/_bz2.cpython-312-x86_64-linux-gnu.so",
                             "/a/torch/_C.cpython-311-x86_64-linux-gnu.so", "/a/_rust.abi3.so",
                             "/opt/python/lib/python2.7/lib-dynload/bz2.so"}) {
        EXPECT_TRUE(is_python_module(name)) << name;
    }
    for (const char* name : {"libpython3.12.so.1.0", "/a/libx.so", ""}) {
        EXPECT_FALSE(is_python_module(name)) << name;
    }
}

TEST(LoadErrorTest, AWrongCallIsNobodysBreakage) {
    EXPECT_FALSE(breakage("/a/x.so", "invalid mode for dlopen(): Invalid argument"));
    EXPECT_FALSE(breakage("/a/x.so", "/a/x.so: invalid mode for dlopen(): Invalid argument"));
    EXPECT_FALSE(breakage("x.so", "x.so: invalid target namespace in dlmopen(): Invalid argument"));
    EXPECT_FALSE(breakage("", "invalid namespace: Invalid argument"));
}

TEST(LoadErrorTest, TextsOfOtherCallsAreNotTakenForFailedLoads) {
    EXPECT_TRUE(is_about_another_call(parse_load_error("shared object not open")));
    EXPECT_TRUE(is_about_another_call(
        parse_load_error("/x: RTLD_NEXT used in code not dynamically loaded")));
    EXPECT_FALSE(is_about_another_call(parse_load_error("/x.so: invalid ELF header")));
    EXPECT_TRUE(is_about_symbol(parse_load_error("/x.so: undefined symbol: f, version V")));
    EXPECT_FALSE(is_about_symbol(parse_load_error("/x.so: invalid ELF header")));
}

}  // namespace
}  // namespace cudiag
