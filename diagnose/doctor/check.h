// What the doctor says: checks, and from them the answers to the user's four questions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/finding.h"

namespace cudiag {

enum class Question : std::uint8_t { import, build, load, launch };
// Good; works, with something to know; does not work; cannot be told from here.
enum class Health : std::uint8_t { green, yellow, red, unknown };

struct Check {
    Question question = Question::import;
    std::string name;  // "torch-libraries": public, only added to
    Health health = Health::green;
    std::string text;       // one line, with the file or the number that it rests on
    bool observed = false;  // it was really done, and goes before all that is inferred
    // Of yellow and red: what is amiss, on what evidence, and what mends it.
    std::optional<Finding> finding;
};

struct Answer {
    Question question = Question::import;
    Health health = Health::green;
    std::string text;
};

struct Examination {
    std::vector<Check> checks;
    std::vector<Answer> answers;  // one a question, in their order
    std::string python;           // of whom all this is said
    std::string python_version;
    std::string chosen_by;
    std::string torch;       // its version; "" without
    std::string torch_cuda;  // "13.0"; "" without
    std::string cuda_home;   // "" if there is none
    std::string cuda_home_rule;
    std::string toolkit;    // its release; "" if not known
    std::string deepspeed;  // its version; "" without

    // Adds what was really done, and answers its question anew.
    void add(Check check);
    bool any_red() const;
};

const char* name_of(Question question);  // "import", "build", "load", "launch"
const char* name_of(Health health);      // "green", "yellow", "red", "unknown"

}  // namespace cudiag
