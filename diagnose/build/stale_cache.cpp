// build-stale-cache: torch's cache of built extensions is keyed by Python and CUDA alone
// (torch/utils/cpp_extension.py, _get_build_directory), so that two torches share a directory.
#include <filesystem>

#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/say.h"

namespace cudiag {

std::optional<Finding> build_stale_cache(const Finding& symptom) {
    const auto& evidence = symptom.evidence;
    const std::string file = evidence.value("file", "");
    const std::string directory = directory_of(file);
    // "2.9.1 in /venv/lib/…": the release alone, to be compared.
    const std::string built_in = evidence.value("built_with", "");
    const std::string built_with = built_in.substr(0, built_in.find(' '));
    const std::string loaded_by = evidence.value("torch", "");
    std::error_code error;
    if (symptom.slug != "loader-abi-mismatch" || directory.empty() || loaded_by.empty() ||
        built_with.empty() || built_with == "not" || built_with == loaded_by ||
        !std::filesystem::exists(directory + "/build.ninja", error)) {
        return std::nullopt;
    }
    Finding finding = symptom;
    finding.slug = "build-stale-cache";
    finding.cause_of.clear();
    finding.title =
        say("{} comes from a cache of builds that several environments share: it was built "
            "with torch {}, and torch {} loads it",
            base_name(file), built_in, loaded_by);
    finding.evidence = nlohmann::ordered_json::object();
    finding.evidence["built_with"] = built_in;
    finding.evidence["loaded_by"] = loaded_by;
    finding.evidence["cache"] = directory;
    finding.evidence["file"] = file;
    finding.limits = say("that no compiler is there would only explain why it is not built anew");
    return finding;
}

}  // namespace cudiag
