// Failures that have not happened yet, put to the rules that explain those that have.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/build/case.h"
#include "diagnose/doctor/facts.h"

namespace cudiag {

// The exception in which the build would end, as the program would word it; `function` is a frame
// of its traceback, "" if none matters. Nothing if no rule knows the words.
std::optional<Finding> explained_exception(const DoctorFacts& facts, const std::string& type,
                                           const std::string& message,
                                           const std::string& function = "");

// A step of nvcc's, or a link, that would fail. Owns what its case points at.
class PredictedStep {
  public:
    // A tool called by nvcc (`under_nvcc`) or by c++.
    PredictedStep(const DoctorFacts& facts, const std::string& tool_path, bool under_nvcc);
    PredictedStep(const PredictedStep&) = delete;
    PredictedStep& operator=(const PredictedStep&) = delete;
    PredictedStep(PredictedStep&&) = delete;
    PredictedStep& operator=(PredictedStep&&) = delete;
    ~PredictedStep() = default;

    BuildStep& step() { return step_; }

    BuildCase build_case() const;

  private:
    const DoctorFacts& facts_;
    BuildStep step_;
    BuildStep caller_;  // gcc, c++
    BuildStep nvcc_;
    bool under_nvcc_;
};

// The load of `file` that a dry run saw fail; `before`: what is mapped when it begins.
std::optional<Finding> explained_load(const DoctorFacts& facts, const std::string& file,
                                      const LoadTrial& trial, const std::vector<Module>& before);

// Takes out of a finding what only a failure that has happened has: which step, started by whom.
Finding ahead_of_time(Finding finding);

}  // namespace cudiag
