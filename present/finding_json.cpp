#include "present/finding_json.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "present/libraries.h"
#include "present/spoken.h"

namespace cudiag {
namespace {

using Json = nlohmann::ordered_json;

std::string host_name() {
    char name[256] = {};
    return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

const char* name_of(EndHow how) {
    switch (how) {
        case EndHow::none:
            return "killed";
        case EndHow::exit:
            return "exit";
        case EndHow::exit_now:
            return "_exit";
        case EndHow::quick_exit:
            return "quick_exit";
        case EndHow::abort:
            return "abort";
        case EndHow::exec:
            return "exec";
    }
    return "unknown";
}

Json step_json(const BuildStep& step) {
    Json entry{{"pid", step.pid},
               {"parent", step.parent},
               {"tool", step.tool()},
               {"exe", step.exe},
               {"argv", step.argv},
               {"cwd", step.cwd},
               {"start_time_ns", step.start_ns},
               {"failed", step.failed()}};
    if (step.ended()) {
        entry["end_time_ns"] = step.end_ns;
        entry["peak_bytes"] = step.peak_bytes;
        if (step.signal != 0) {
            entry["signal"] = step.signal;
        } else {
            entry["status"] = step.status;
        }
    }
    return entry;
}

Json process_json(const Process& process) {
    Json entry{{"pid", process.pid},
               {"ppid", process.ppid},
               {"root", process.pid == process.root_pid},
               {"exe", process.exe},
               {"argv", process.argv},
               {"cwd", process.cwd},
               {"start_time_ns", process.start_time_ns},
               {"end", process.alive ? "running" : name_of(process.end)}};
    if (process.end != EndHow::none) {
        entry["status"] = process.end_status;
        entry["end_time_ns"] = process.end_time_ns;
    }
    entry["environment"] = process.environment;
    entry["failed_loads"] = process.failures.size();
    auto exceptions = Json::array();
    for (const PythonException& exception : process.exceptions) {
        exceptions.push_back({{"type", exception.type}, {"message", exception.message}});
    }
    entry["exceptions"] = std::move(exceptions);
    auto modules = Json::array();
    if (!process.snapshots.empty()) {
        for (const Module& module : process.snapshots.rbegin()->second) {
            modules.push_back(module.path);
        }
    }
    entry["modules"] = std::move(modules);
    return entry;
}

std::string text_at(const Json& json, const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_string()
               ? json[key].get<std::string>()
               : "";
}

std::uint64_t number_at(const Json& json, const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_number_integer()
               ? json[key].get<std::uint64_t>()
               : 0;
}

Json list_at(const Json& json, const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_array() ? json[key]
                                                                          : Json::array();
}

void add_words_behind(const Json& value, std::map<std::string, Said>& known) {
    if (value.is_string()) {
        known.merge(words_behind(value.get<std::string>()));
    } else if (value.is_structured()) {
        for (const Json& part : value) {
            add_words_behind(part, known);
        }
    }
}

void remember_words(const Json& json) {
    if (!json.is_object() || !json.contains("said") || !json["said"].is_object()) {
        return;
    }
    for (const auto& [sentence, parts] : json["said"].items()) {
        const bool texts = parts.is_array() && !parts.empty() &&
                           std::all_of(parts.begin(), parts.end(),
                                       [](const Json& part) { return part.is_string(); });
        if (texts) {
            remember(sentence,
                     Said{parts[0].get<std::string>(),
                          std::vector<std::string>(std::next(parts.begin()), parts.end())});
        }
    }
}

}  // namespace

const char* name_of(Severity severity) {
    switch (severity) {
        case Severity::note:
            return "note";
        case Severity::warning:
            return "warning";
        case Severity::error:
            return "error";
    }
    return "note";
}

Json to_json(const Finding& finding) {
    Json json{{"schema", kFindingSchema},
              {"id", finding.id},
              {"slug", finding.slug},
              {"severity", name_of(finding.severity)},
              {"confidence", finding.confidence == Confidence::certain ? "certain" : "likely"},
              {"title", finding.title},
              {"time_ns", finding.time_ns},
              {"host", host_name()},
              {"rank", finding.rank ? Json(*finding.rank) : Json(nullptr)},
              {"pid", finding.pid},
              {"tid", finding.tid},
              {"argv", finding.argv},
              {"evidence", finding.evidence}};
    auto python = Json::array();
    for (const PythonFrame& frame : finding.python) {
        python.push_back(
            {{"file", frame.file}, {"line", frame.line}, {"function", frame.function}});
    }
    auto native = Json::array();
    for (const NativeFrame& frame : finding.native) {
        native.push_back({{"module", frame.module}, {"offset", frame.offset}});
    }
    json["where"] = {{"python", std::move(python)}, {"native", std::move(native)}};
    auto fixes = Json::array();
    for (const Fix& fix : finding.fixes) {
        fixes.push_back({{"text", fix.text}, {"command", fix.command}, {"proved", fix.proved}});
    }
    json["fixes"] = std::move(fixes);
    json["cause_of"] = finding.cause_of;
    json["limits"] = finding.limits;
    return json;
}

Json saved_json(const Finding& finding) {
    std::map<std::string, Said> known;
    add_words_behind(finding.title, known);
    add_words_behind(finding.limits, known);
    add_words_behind(finding.evidence, known);
    for (const Fix& fix : finding.fixes) {
        add_words_behind(fix.text, known);
    }
    Json json = to_json(finding);
    Json& said = json["said"] = Json::object();
    for (const auto& [sentence, how] : known) {
        auto parts = Json::array({how.words});
        for (const std::string& argument : how.arguments) {
            parts.push_back(argument);
        }
        said[sentence] = std::move(parts);
    }
    return json;
}

Finding finding_from_json(const Json& json) {
    remember_words(json);
    Finding finding;
    finding.id = text_at(json, "id");
    finding.slug = text_at(json, "slug");
    const std::string severity = text_at(json, "severity");
    finding.severity = severity == "error"     ? Severity::error
                       : severity == "warning" ? Severity::warning
                                               : Severity::note;
    finding.confidence =
        text_at(json, "confidence") == "certain" ? Confidence::certain : Confidence::likely;
    finding.title = text_at(json, "title");
    finding.time_ns = number_at(json, "time_ns");
    finding.pid = static_cast<std::int32_t>(number_at(json, "pid"));
    finding.tid = static_cast<std::int32_t>(number_at(json, "tid"));
    if (json.is_object() && json.contains("rank") && json["rank"].is_number_integer()) {
        finding.rank = json["rank"].get<std::int64_t>();
    }
    for (const Json& argument : list_at(json, "argv")) {
        finding.argv.push_back(argument.is_string() ? argument.get<std::string>() : "");
    }
    if (json.contains("evidence") && json["evidence"].is_object()) {
        finding.evidence = json["evidence"];
    }
    const Json where =
        json.contains("where") && json["where"].is_object() ? json["where"] : Json::object();
    for (const Json& frame : list_at(where, "python")) {
        finding.python.push_back(
            {text_at(frame, "file"), number_at(frame, "line"), text_at(frame, "function")});
    }
    for (const Json& frame : list_at(where, "native")) {
        finding.native.push_back({text_at(frame, "module"), number_at(frame, "offset")});
    }
    for (const Json& fix : list_at(json, "fixes")) {
        finding.fixes.push_back(
            {text_at(fix, "text"), text_at(fix, "command"),
             fix.is_object() && fix.contains("proved") && fix["proved"] == true});
    }
    for (const Json& id : list_at(json, "cause_of")) {
        finding.cause_of.push_back(id.is_string() ? id.get<std::string>() : "");
    }
    finding.limits = text_at(json, "limits");
    return finding;
}

Json report_json(const Facts& facts, const std::vector<Finding>& findings,
                 const std::vector<ProcessLibraries>& libraries) {
    auto processes = Json::array();
    for (const Process& process : facts.processes) {
        processes.push_back(process_json(process));
    }
    auto steps = Json::array();
    for (const BuildStep& step : facts.build.steps) {
        steps.push_back(step_json(step));
    }
    auto list = Json::array();
    for (const Finding& finding : findings) {
        list.push_back(to_json(finding));
    }
    return {{"schema", kFindingSchema},
            {"run",
             {{"directory", facts.run_directory},
              {"unreadable", facts.unreadable},
              {"processes", std::move(processes)},
              {"build", std::move(steps)}}},
            {"libraries", libraries_json(libraries)},
            {"findings", std::move(list)}};
}

std::string json_line(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cudiag
