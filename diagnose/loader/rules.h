// The loader rules: each takes one failed load and gives perhaps a finding. A rule's file bears its
// slug's name. What each may not conclude is in its finding's `limits` and in explain/SLUG.md.
#pragma once

#include <optional>
#include <vector>

#include "diagnose/loader/case.h"

namespace cudiag {

std::optional<Finding> loader_missing_driver(const LoaderCase& c);
std::optional<Finding> loader_wrong_architecture(const LoaderCase& c);
std::optional<Finding> loader_static_tls(const LoaderCase& c);
std::optional<Finding> loader_glibc_too_old(const LoaderCase& c);
std::optional<Finding> package_broken(const LoaderCase& c);
std::optional<Finding> loader_libstdcxx_too_old(const LoaderCase& c);
std::optional<Finding> loader_abi_mismatch(const LoaderCase& c);
std::optional<Finding> loader_symbol_version(const LoaderCase& c);
std::optional<Finding> loader_missing_library(const LoaderCase& c);

// The first of them that speaks, from the particular to the general: the finding of a failure.
std::optional<Finding> loader_finding(const LoaderCase& c);

// The copy chosen hides a better one: the cause of a symbol or version failure. `symptom` is the
// finding it explains.
std::optional<Finding> loader_shadowed_library(const LoaderCase& c, const Finding& symptom);

// Of a whole process that failed, by what was mapped at the end.
std::vector<Finding> loader_two_runtimes(const Process& process);
std::optional<Finding> loader_stub_driver(const Process& process);

}  // namespace cudiag
