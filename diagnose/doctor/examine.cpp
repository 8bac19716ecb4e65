// All checks, and the answers to the four questions.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "diagnose/doctor/rules.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

constexpr std::array kQuestions{Question::import, Question::build, Question::load,
                                Question::launch};

// What is certain goes before what is not known, and that before what is merely worth a word.
int rank_of(Health health) {
    switch (health) {
        case Health::red:
            return 3;
        case Health::unknown:
            return 2;
        case Health::yellow:
            return 1;
        case Health::green:
            return 0;
    }
    return 0;
}

const Check* worst_of(const Checks& checks, Question question) {
    const Check* worst = nullptr;
    for (const Check& check : checks) {
        if (check.question == question &&
            (worst == nullptr || rank_of(check.health) > rank_of(worst->health))) {
            worst = &check;
        }
    }
    return worst;
}

bool has_red(const Checks& checks, Question question) {
    const Check* worst = worst_of(checks, question);
    return worst != nullptr && worst->health == Health::red;
}

// A torch that is built without CUDA: nothing else about building and launching matters then.
void check_torch_cuda(const DoctorFacts& facts, Checks& checks) {
    Finding finding;
    finding.slug = "torch-without-cuda";
    finding.title = say("torch {} is built without CUDA{}", facts.torch.version,
                        facts.torch.hip.empty() ? "" : say(" (for ROCm)"));
    finding.evidence["torch"] = facts.torch.version;
    finding.evidence["file"] = facts.torch.directory + "/version.py";
    finding.fixes.push_back(
        {.text = say("install the one that is built with it: PyPI's own wheel for Linux is"),
         .command = fmt::format("{} -m pip install --force-reinstall torch=={}",
                                shell_quoted(facts.python.path),
                                facts.torch.version.substr(0, facts.torch.version.find('+')))});
    finding.limits =
        say("packages that were built for this torch are to be installed anew as well");
    for (const Question question : {Question::build, Question::launch}) {
        checks.push_back({.question = question,
                          .name = "torch-cuda",
                          .health = Health::red,
                          .text = finding.title,
                          .observed = false,
                          .finding = finding});
    }
}

void check_build(const DoctorFacts& facts, Checks& checks) {
    if (facts.torch.found() && facts.torch.cuda.empty()) {
        return;
    }
    check_toolkit(facts, checks);
    check_toolkit_release(facts, checks);
    check_host_compilers(facts, checks);
    check_headers(facts, checks);
    check_architectures(facts, checks);
    check_ninja(facts, checks);
    check_link(facts, checks);
    check_build_memory(facts, checks);
    check_build_directory(facts, checks);
}

// With a torch that cannot be imported, the rest cannot be done either. Without any, what can be
// said of nvcc and of the driver is said of them alone.
void add_consequences(const DoctorFacts& facts, Checks& checks) {
    if (!has_red(checks, Question::import)) {
        return;
    }
    for (const Question question : {Question::build, Question::load, Question::launch}) {
        if (facts.torch.found() || question == Question::load) {
            checks.push_back({.question = question,
                              .name = "needs-torch",
                              .health = Health::red,
                              .text = facts.torch.found()
                                          ? say("torch cannot be imported (see above)")
                                          : say("there is no torch (see above)"),
                              .observed = false,
                              .finding = std::nullopt});
        }
    }
}

std::string good_words(const Examination& examination, Question question) {
    switch (question) {
        case Question::import:
            return say("torch {}, all of its libraries found", examination.torch);
        case Question::build:
            return say("nvcc {}, its host compiler and all headers are there{}",
                       examination.toolkit,
                       examination.torch.empty() ? say("; without torch, for nvcc alone")
                       : examination.deepspeed.empty()
                           ? ""
                           : say("; fused_adam of DeepSpeed {}", examination.deepspeed));
        case Question::load:
            return say("all that is built with torch finds what it needs");
        case Question::launch:
            return say("a driver that torch's runtime accepts, and its devices");
    }
    return {};
}

Answer answer_of(const Examination& examination, Question question) {
    const Check* decisive = worst_of(examination.checks, question);
    if (decisive == nullptr) {
        return {question, Health::unknown, say("nothing is known")};
    }
    for (const Check& check : examination.checks) {
        if (check.observed && check.question == question &&
            (check.health == Health::red || decisive->health != Health::yellow)) {
            decisive = &check;
        }
    }
    return {question, decisive->health,
            decisive->health == Health::green && !decisive->observed
                ? good_words(examination, question)
                : decisive->text};
}

}  // namespace

void Examination::add(Check check) {
    const Question question = check.question;
    checks.push_back(std::move(check));
    std::stable_sort(checks.begin(), checks.end(),
                     [](const Check& a, const Check& b) { return a.question < b.question; });
    for (Answer& answer : answers) {
        if (answer.question == question) {
            answer = answer_of(*this, question);
        }
    }
}

bool Examination::any_red() const {
    return std::any_of(answers.begin(), answers.end(),
                       [](const Answer& answer) { return answer.health == Health::red; });
}

const char* name_of(Question question) {
    constexpr const char* kNames[] = {"import", "build", "load", "launch"};
    return kNames[static_cast<std::size_t>(question)];
}

const char* name_of(Health health) {
    constexpr const char* kNames[] = {"green", "yellow", "red", "unknown"};
    return kNames[static_cast<std::size_t>(health)];
}

Examination examine(const DoctorFacts& facts) {
    Examination examination;
    Checks& checks = examination.checks;
    check_torch(facts, checks);
    check_torch_libraries(facts, checks);
    check_mixed_wheels(facts, checks);
    check_driver(facts, checks);  // before the build: torch may compile for the GPUs that it sees
    check_shared_memory(facts, checks);
    check_build(facts, checks);
    check_built_runtime(facts, checks);
    check_extensions(facts, checks);
    if (facts.torch.found() && facts.torch.cuda.empty()) {
        check_torch_cuda(facts, checks);
    }
    add_consequences(facts, checks);
    std::stable_sort(checks.begin(), checks.end(),
                     [](const Check& a, const Check& b) { return a.question < b.question; });
    examination.python = facts.python.path;
    examination.python_version = facts.python.version;
    examination.chosen_by = facts.python.chosen_by;
    examination.torch = facts.torch.version;
    examination.torch_cuda = facts.torch.cuda;
    examination.cuda_home = facts.tools.home.home;
    examination.cuda_home_rule = facts.tools.home.rule;
    examination.toolkit = facts.tools.toolkit.release;
    examination.deepspeed = facts.deepspeed;
    for (const Question question : kQuestions) {
        examination.answers.push_back(answer_of(examination, question));
    }
    return examination;
}

}  // namespace cudiag
