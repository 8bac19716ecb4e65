// One explained fact about a run. docs/findings.md is the contract; `cudiag explain SLUG` the long
// text.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace cudiag {

enum class Severity : std::uint8_t { note, warning, error };
enum class Confidence : std::uint8_t { likely, certain };

// A remedy. `proved` only when a dry run with the remedy in place succeeded.
struct Fix {
    std::string text;     // what it does, one line
    std::string command;  // can be pasted; "" when there is none
    bool proved = false;
};

struct PythonFrame {
    std::string file;
    std::uint64_t line = 0;
    std::string function;
};

struct NativeFrame {
    std::string module;
    std::uint64_t offset = 0;
};

struct Finding {
    std::string id;  // "PID.N": stable within a run
    std::string slug;
    Severity severity = Severity::error;
    Confidence confidence = Confidence::certain;
    std::string title;  // what happened, one line
    std::uint64_t time_ns = 0;
    std::int32_t pid = 0;
    std::int32_t tid = 0;
    std::optional<std::int64_t> rank;  // of a distributed job, where it is known
    std::vector<std::string> argv;
    nlohmann::ordered_json evidence = nlohmann::ordered_json::object();
    std::vector<PythonFrame> python;  // innermost first
    std::vector<NativeFrame> native;
    std::vector<Fix> fixes;             // the best first
    std::vector<std::string> cause_of;  // ids of findings that this one explains
    std::string limits;                 // what this finding cannot know
};

}  // namespace cudiag
