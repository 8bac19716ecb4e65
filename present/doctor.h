// What the doctor found, for a person at a terminal, as JSON, and as a script that mends it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "diagnose/doctor/check.h"
#include "present/terminal.h"

namespace cudiag {

inline constexpr int kDoctorSchema = 1;

// The four answers, then what is amiss with its remedies, then what is well. `program` is what the
// user calls this command.
std::string render_examination(const Examination& examination, const Style& style);

// {"schema", "python": {…}, "torch": {…}, "toolkit": {…}, "answers": […], "checks": […]}:
// docs/howto/ before-it-runs.md is the schema. Keys are only ever added.
nlohmann::ordered_json examination_json(const Examination& examination);

// A shell script with the first remedy of each thing that is red, each under the reason for it; ""
// if nothing can be mended by a command.
std::string repair_script(const Examination& examination);

}  // namespace cudiag
