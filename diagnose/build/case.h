// One step of a build that failed by itself, with what the build rules ask about it. Rules take a
// case and give perhaps a finding.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/build/toolkit.h"
#include "diagnose/facts.h"
#include "diagnose/machine.h"
#include "diagnose/packages/owner.h"

namespace cudiag {

struct BuildCase {
    const Facts& facts;
    const BuildStep& step;                // no step below it failed
    std::vector<const BuildStep*> above;  // the steps that it failed, from its parent up
    const Process* root = nullptr;        // the recording of the process that asked for the build

    // A variable of the environment that the build was started with; "" if it was not set.
    std::string variable(const std::string& name) const;
    // The nvcc that the step belongs to: itself, or the nearest above; nullptr if there is none.
    const BuildStep* nvcc() const;
    const BuildStep* above_named(std::initializer_list<std::string_view> tools) const;
    // The source file that was compiled, as an absolute path; "" if it is not known.
    std::string source() const;
    // The toolkit of its nvcc; else the one that CUDA_HOME names; nothing if there is neither.
    std::optional<Toolkit> toolkit() const;
    std::vector<std::string> site_packages() const;
    // Of the wheels in those directories; nothing if it is in none.
    std::optional<Package> installed(const std::string& package) const;
    std::vector<Toolkit> toolkits() const;  // all near it, the newest first
    // Of the torch that asked for the build, "2.13.0+cu130"; "" if there was none.
    std::string torch_version() const;
    std::string python() const;  // for commands, shell-quoted
};

// The steps whose failure is the run's, the first one first: nothing above them went on as if they
// had been tried for a look. What is probed (configure, try_compile) is left out.
std::vector<BuildCase> failed_steps(const Facts& facts);

// The recording of the process that asked for the build; nullptr if it has none.
const Process* root_of(const Facts& facts);

// Does an exception that ended the root have to do with a build? True where none is known.
bool may_be_about_a_build(const Process* root);

// A finding with everything filled in that all findings of this case share.
Finding begin_finding(const BuildCase& c, const char* slug, std::string title);

// How many steps of this tool ran at that moment, the given one included.
std::size_t running_at(const Build& build, const std::string& tool, std::uint64_t time_ns);

}  // namespace cudiag
