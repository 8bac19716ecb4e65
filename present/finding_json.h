// Findings as JSON: docs/findings.md is the schema. Keys are only ever added.
#pragma once

#include <nlohmann/json.hpp>

#include "diagnose/facts.h"
#include "diagnose/finding.h"
#include "diagnose/loader/mapped.h"

namespace cudiag {

inline constexpr int kFindingSchema = 1;

nlohmann::ordered_json to_json(const Finding& finding);

// As to_json, with how its sentences were made ("said": {SENTENCE: [WORDS, ARGUMENT, …]}), so that
// a finding that was kept can be told in another language.
nlohmann::ordered_json saved_json(const Finding& finding);

// The inverse of either; how sentences were made is remembered (diagnose/say.h). Keys that are
// absent or of another type are left at their defaults: the file may be of another version.
Finding finding_from_json(const nlohmann::ordered_json& json);

// {"schema", "run": {…, "processes": […]}, "libraries": […], "findings": […]}; "profiles": […] is
// for the caller to add (profile_block.h)
nlohmann::ordered_json report_json(const Facts& facts, const std::vector<Finding>& findings,
                                   const std::vector<ProcessLibraries>& libraries = {});

// One line of JSON, ended by a newline. Bytes that are no UTF-8 (paths may hold any) are replaced,
// never fatal.
std::string json_line(const nlohmann::ordered_json& value);

const char* name_of(Severity severity);

}  // namespace cudiag
