// The build rules: each takes one failed step and gives perhaps a finding. A rule's file bears its
// slug's name. What each may not conclude is in its finding's `limits` and in explain/SLUG.md.
#pragma once

#include <optional>
#include <vector>

#include "diagnose/build/case.h"
#include "diagnose/build/host_compiler.h"

namespace cudiag {

std::optional<Finding> build_out_of_address_space(const BuildCase& c);
// Where the host compiler is known otherwise: from what torch printed.
std::optional<Finding> too_new_for_nvcc(const BuildCase& c, const Toolkit& toolkit,
                                        const HostCompiler& host);
std::optional<Finding> build_process_limit(const BuildCase& c);
std::optional<Finding> build_out_of_memory(const BuildCase& c);
std::optional<Finding> build_missing_compiler(const BuildCase& c);
std::optional<Finding> build_unsupported_host_compiler(const BuildCase& c);
std::optional<Finding> build_unsupported_arch(const BuildCase& c);
std::optional<Finding> build_toolkit_mismatch(const BuildCase& c);
std::optional<Finding> build_missing_header(const BuildCase& c);
std::optional<Finding> build_link_failed(const BuildCase& c);
std::optional<Finding> build_incompatible_headers(const BuildCase& c);

// The finding build-missing-compiler itself, for rules that learn of it otherwise.
Finding missing_program(const BuildCase& c, const std::string& asked, bool broken);

// Of a whole run: what no failed step tells.
std::vector<Finding> build_stale_locks(const Facts& facts);
// A build.ninja that is about to call an nvcc that is not there.
std::optional<Finding> build_missing_compiler_ahead(const Facts& facts);
// What the final exception of a program says of a build that started no step, or none that failed.
std::optional<Finding> build_text_finding(const Facts& facts, const Process& process);

// A library that was to be built is not there, and nothing was built.
std::optional<Finding> build_nothing_built(const Facts& facts, const Process& process,
                                           const LoadFailure& failure);
// The cause of a loader-abi-mismatch, where the file is of a shared cache of builds.
std::optional<Finding> build_stale_cache(const Finding& symptom);

// Notes for the report.
std::optional<Finding> build_slow(const Facts& facts);
std::optional<Finding> build_wrong_accelerator(const Facts& facts);

}  // namespace cudiag
