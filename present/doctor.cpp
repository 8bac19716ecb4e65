#include "present/doctor.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <vector>

#include "diagnose/say.h"
#include "present/finding_json.h"
#include "present/painter.h"
#include "present/spoken.h"

namespace cudiag {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kQuestionWidth = 30;
constexpr std::size_t kAnswerWidth = 9;
constexpr std::size_t kNameWidth = 20;

std::string painted(const Painter& painter, Health health, const std::string& text) {
    return health == Health::green    ? painter.green(text)
           : health == Health::yellow ? painter.yellow(text)
           : health == Health::red    ? painter.red(text)
                                      : painter.bold(text);
}

std::string asked(Question question) {
    switch (question) {
        case Question::import:
            return spoken(say("import torch"));
        case Question::build:
            return spoken(say("build CUDA extensions"));
        case Question::load:
            return spoken(say("load what was built"));
        case Question::launch:
            return spoken(say("launch on a GPU"));
    }
    return {};
}

std::string answered(Health health) {
    switch (health) {
        case Health::green:
            return spoken_label("yes");
        case Health::yellow:
            return spoken_label("yes, but");
        case Health::red:
            return spoken_label("no");
        case Health::unknown:
            return spoken_label("not known");
    }
    return {};
}

std::string padded(const std::string& text, std::size_t width) {
    return text + padding(text, width);
}

std::string render_answer(const Answer& answer, const Painter& painter) {
    const std::string said = padded(answered(answer.health), kAnswerWidth + 1);
    return fmt::format("  {}{}{}\n", padded(asked(answer.question), kQuestionWidth - 6),
                       painted(painter, answer.health, said),
                       wrapped(printable(spoken(answer.text)), painter.width(),
                               2 + kQuestionWidth - 6 + kAnswerWidth + 1));
}

std::string render_fixes(const Finding& finding, const Painter& painter) {
    std::string out;
    for (const Fix& fix : finding.fixes) {
        out += fmt::format("    {}{}\n", painter.bold(padded(spoken_label("fix"), 6)),
                           wrapped(printable(spoken(fix.text)), painter.width(), 10));
        if (!fix.command.empty()) {
            out += fmt::format("          $ {}\n", painter.bold(printable(fix.command)));
        }
    }
    return out;
}

// One thing that is amiss.
std::string render_amiss(const Check& check, const Painter& painter) {
    std::string out = fmt::format(
        "\n{} {} {}{}\n    {}\n", painter.bold("cudiag:"),
        painted(painter, check.health,
                spoken_label(check.health == Health::red ? "red" : name_of(check.health))),
        painter.bold(fmt::format("{}: {}", name_of(check.question), check.name)),
        check.finding && check.finding->confidence == Confidence::likely ? spoken(say(" (likely)"))
                                                                         : "",
        wrapped(printable(spoken(check.text)), painter.width(), 4));
    if (check.finding) {
        out += render_fixes(*check.finding, painter);
        if (!check.finding->limits.empty()) {
            out +=
                fmt::format("    {}{}\n", padded(spoken_label("limits"), 7),
                            wrapped(printable(spoken(check.finding->limits)), painter.width(), 11));
        }
        out += fmt::format("    {}cudiag explain {}\n", padded(spoken_label("more"), 7),
                           check.finding->slug);
    }
    return out;
}

Json check_json(const Check& check) {
    return {{"question", name_of(check.question)},
            {"name", check.name},
            {"health", name_of(check.health)},
            {"text", check.text},
            {"observed", check.observed},
            {"finding", check.finding ? to_json(*check.finding) : Json(nullptr)}};
}

bool is_setting(const std::string& command) {
    return command.rfind("export ", 0) == 0 || command.rfind("unset ", 0) == 0 ||
           command.rfind("ulimit ", 0) == 0;
}

void add_comment(const std::string& text, std::string& script) {
    constexpr std::size_t kWidth = 98;
    std::istringstream lines{wrapped(printable(text), kWidth, 0)};
    for (std::string line; std::getline(lines, line);) {
        script += "# " + line + "\n";
    }
}

}  // namespace

std::string render_examination(const Examination& examination, const Style& style) {
    const Painter painter{style};
    std::string out = fmt::format(
        "{} {}{}{}\n", painter.bold("cudiag doctor:"),
        printable(examination.python.empty() ? spoken(say("no Python")) : examination.python),
        examination.python_version.empty()
            ? ""
            : spoken(say(" ({}, by {})", examination.python_version, examination.chosen_by)),
        examination.torch.empty() ? "" : ", torch " + printable(examination.torch));
    for (const Answer& answer : examination.answers) {
        out += render_answer(answer, painter);
    }
    std::set<std::string> told;  // one cause can be told by two questions
    for (const Check& check : examination.checks) {
        const bool amiss = check.health == Health::red || check.health == Health::yellow;
        if (amiss && check.name != "needs-torch" && told.insert(check.text).second) {
            out += render_amiss(check, painter);
        }
    }
    out += '\n';
    for (const Check& check : examination.checks) {
        if (check.health == Health::green) {
            out += fmt::format(
                "  {} {}{}\n", painted(painter, Health::green, "ok"),
                padded(check.name, kNameWidth),
                wrapped(printable(spoken(check.text)), painter.width(), 5 + kNameWidth));
        }
    }
    return out;
}

Json examination_json(const Examination& examination) {
    auto answers = Json::array();
    for (const Answer& answer : examination.answers) {
        answers.push_back({{"question", name_of(answer.question)},
                           {"health", name_of(answer.health)},
                           {"text", answer.text}});
    }
    auto checks = Json::array();
    for (const Check& check : examination.checks) {
        checks.push_back(check_json(check));
    }
    return {{"schema", kDoctorSchema},
            {"python",
             {{"path", examination.python},
              {"version", examination.python_version},
              {"chosen_by", examination.chosen_by}}},
            {"torch", {{"version", examination.torch}, {"cuda", examination.torch_cuda}}},
            {"toolkit",
             {{"cuda_home", examination.cuda_home},
              {"chosen_by", examination.cuda_home_rule},
              {"release", examination.toolkit}}},
            {"deepspeed", examination.deepspeed},
            {"answers", std::move(answers)},
            {"checks", std::move(checks)}};
}

std::string repair_script(const Examination& examination) {
    std::string commands;
    std::string settings;
    std::set<std::string> told;
    for (const Check& check : examination.checks) {
        if (check.health != Health::red || !check.finding) {
            continue;
        }
        const std::vector<Fix>& fixes = check.finding->fixes;
        const auto fix = std::find_if(fixes.begin(), fixes.end(),
                                      [](const Fix& each) { return !each.command.empty(); });
        if (fix == fixes.end() || !told.insert(fix->command).second) {
            continue;
        }
        std::string& part = is_setting(fix->command) ? settings : commands;
        part += '\n';
        add_comment(spoken(check.text), part);
        add_comment(spoken(say("so: {}", fix->text)), part);
        part += fix->command + "\n";
    }
    if (commands.empty() && settings.empty()) {
        return {};
    }
    std::string script = fmt::format(
        "#!/bin/sh\n# {}\nset -e\n{}",
        spoken(say("Made by cudiag doctor --fix for {}", printable(examination.python))), commands);
    if (!settings.empty()) {
        script += fmt::format(
            "\n# {}\n{}",
            spoken(
                say("What follows is for your own shell: source this file, or copy these lines.")),
            settings);
    }
    return script;
}

}  // namespace cudiag
