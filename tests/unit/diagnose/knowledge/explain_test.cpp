// `cudiag explain SLUG`: each finding that can be made has a text, and each text tells what it
// must.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "diagnose/embedded.h"

namespace cudiag {
namespace {

constexpr const char* kSlugs[] = {"cuda-no-driver",
                                  "cuda-driver-too-old",
                                  "cuda-device-unavailable",
                                  "cuda-async-error",
                                  "cuda-unseen-launches",
                                  "cuda-launch-config",
                                  "cuda-context-destroyed",
                                  "cuda-out-of-memory",
                                  "cuda-no-kernel-image",
                                  "cuda-ptx-rejected",
                                  "cuda-ptx-jit-slow",
                                  "container-device-revoked",
                                  "nccl-no-interface",
                                  "nccl-duplicate-gpu",
                                  "nccl-shm-too-small",
                                  "nccl-version-mix",
                                  "nccl-system-error",
                                  "nccl-cuda-error",
                                  "nccl-remote-error",
                                  "nccl-hang",
                                  "loader-missing-library",
                                  "loader-symbol-version",
                                  "loader-abi-mismatch",
                                  "loader-shadowed-library",
                                  "loader-two-runtimes",
                                  "loader-libstdcxx-too-old",
                                  "loader-glibc-too-old",
                                  "package-broken",
                                  "loader-missing-driver",
                                  "loader-stub-driver",
                                  "loader-wrong-architecture",
                                  "loader-static-tls",
                                  "hidden-cause",
                                  "package-missing",
                                  "torch-without-cuda",
                                  "build-no-directory",
                                  "process-killed",
                                  "process-not-preloaded",
                                  "record-incomplete",
                                  "build-missing-header",
                                  "build-missing-compiler",
                                  "build-toolkit-mismatch",
                                  "build-unsupported-host-compiler",
                                  "build-unsupported-arch",
                                  "build-out-of-memory",
                                  "build-process-limit",
                                  "build-stale-lock",
                                  "build-link-failed",
                                  "build-nvrtc-failed",
                                  "build-stale-cache",
                                  "build-nothing-built",
                                  "build-incompatible-headers",
                                  "package-without-extension",
                                  "build-slow",
                                  "build-wrong-accelerator",
                                  "optimizer-profile",
                                  "optimizer-not-fused",
                                  "optimizer-cpu-bound",
                                  "optimizer-launch-bound",
                                  "optimizer-jit-first-step",
                                  "profile-seat-taken",
                                  "profile-not-permitted"};

constexpr const char* kSections[] = {"## What happened", "## How cudiag knows", "## What to do",
                                     "## What does not help", "## What this cannot tell"};

std::string text_of(const std::string& slug) {
    return std::string{embedded_file(slug + ".md")};
}

// The lines of the section that begins with `heading`, up to the next one.
std::string section(const std::string& text, const std::string& heading) {
    const auto at = text.find("\n" + heading + "\n");
    if (at == std::string::npos) {
        return {};
    }
    const auto begin = at + heading.size() + 2;
    return text.substr(begin, text.find("\n## ", begin) - begin);
}

TEST(Explain, EverySlugHasATextWithAllItsSections) {
    for (const char* slug : kSlugs) {
        SCOPED_TRACE(slug);
        const std::string text = text_of(slug);
        ASSERT_FALSE(text.empty());
        EXPECT_EQ(text.rfind("# " + std::string{slug} + ": ", 0), 0U);
        for (const char* heading : kSections) {
            EXPECT_GT(section(text, heading).size(), 80U) << heading;
        }
    }
}

TEST(Explain, TextsFitAScreenOrTwo) {
    for (const char* slug : kSlugs) {
        const std::string text = text_of(slug);
        const auto lines = std::count(text.begin(), text.end(), '\n');
        EXPECT_GE(lines, 40) << slug;
        EXPECT_LE(lines, 90) << slug;
        std::istringstream stream{text};
        for (std::string line; std::getline(stream, line);) {
            EXPECT_LE(line.size(), 110U) << slug << ": " << line;
        }
    }
}

TEST(Explain, WhatToDoHoldsACommandThatCanBePasted) {
    for (const char* slug : kSlugs) {
        EXPECT_NE(section(text_of(slug), "## What to do").find("\n    "), std::string::npos)
            << slug;
    }
}

TEST(Explain, NoTextIsOfAnUnknownSlug) {
    for (const std::string_view name : embedded_files()) {
        if (name.size() > 3 && name.substr(name.size() - 3) == ".md") {
            const auto folder = name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1;
            const std::string slug{name.substr(folder, name.size() - 3 - folder)};
            EXPECT_NE(std::find(std::begin(kSlugs), std::end(kSlugs), slug), std::end(kSlugs))
                << slug;
        }
    }
}

TEST(Explain, TheCatalogueDescribesEverySlug) {
    std::ifstream file{std::string{CUDIAG_TEST_DATA} + "/../docs/findings.md"};
    std::stringstream whole;
    whole << file.rdbuf();
    ASSERT_FALSE(whole.str().empty());
    for (const char* slug : kSlugs) {
        EXPECT_NE(whole.str().find("\n### " + std::string{slug} + "\n"), std::string::npos) << slug;
    }
}

}  // namespace
}  // namespace cudiag
