#include "present/terminal.h"

#include <fmt/core.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <set>

#include "diagnose/say.h"
#include "diagnose/units.h"
#include "present/finding_json.h"
#include "present/painter.h"
#include "present/spoken.h"

namespace cudiag {
namespace {

using Json = nlohmann::ordered_json;

std::string label_of(std::string key) {
    std::replace(key.begin(), key.end(), '_', ' ');
    return key;
}

// In English a key within a value stands as `--json` has it.
std::string inner_label(const std::string& key) {
    const std::string label = label_of(key);
    const std::string told = spoken_label(label);
    return told == label ? key : told;
}

std::string text_of(const Json& value) {
    if (value.is_string()) {
        return spoken(value.get<std::string>());
    }
    if (value.is_array()) {
        std::string text;
        for (const Json& item : value) {
            text += (text.empty() ? "" : ", ") + text_of(item);
        }
        return text;
    }
    if (value.is_object()) {
        std::string text;
        for (const auto& [key, item] : value.items()) {
            const std::string part = text_of(item);
            if (!part.empty()) {
                text += fmt::format("{}{} {}", text.empty() ? "" : ", ", inner_label(key), part);
            }
        }
        return text;
    }
    return value.is_null() ? "" : value.is_boolean() ? spoken_label(value.dump()) : value.dump();
}

// "DT_RUNPATH of /a/long/path/_C.so" -> "DT_RUNPATH of _C.so": the chain above names the file in
// full.
std::string short_why(const std::string& why) {
    const auto of = why.find(" of /");
    if (of == std::string::npos) {
        return why;
    }
    const std::string file = why.substr(why.rfind('/') + 1);
    std::string brief = why.substr(0, of + 4) + file;
    if (const Said* said = how_said(why); said != nullptr && said->arguments.size() == 1) {
        remember(brief, Said{said->words, {file}});
    }
    return brief;
}

// The search, a line a directory. The same directory tried by two rules stands twice, as ld.so
// looked twice.
std::string render_search(const Json& steps, const Painter& painter) {
    std::string out;
    constexpr std::size_t kMost = 24;
    std::size_t number = 0;
    std::size_t longest = 0;
    for (const Json& step : steps) {
        longest = std::max(longest, step.value("dir", "").size());
    }
    longest = std::min<std::size_t>(longest, painter.width() / 2);
    for (const Json& step : steps) {
        if (++number > kMost) {
            out += painter.line("", say("… and {} more", steps.size() - kMost));
            break;
        }
        const std::string result = step.value("result", "");
        const bool found = result.rfind("found", 0) == 0;
        const std::string told = spoken(result);
        std::string text = fmt::format("{:<{}}  {}  ({})", printable(step.value("dir", "")),
                                       longest, found ? painter.green(told) : told,
                                       printable(spoken(short_why(step.value("why", "")))));
        const std::string label = number == 1 ? spoken_label("searched") : "";
        out += fmt::format("  {}{}{}\n", painter.dim(label), padding(label, kLabelColumns), text);
    }
    return out;
}

std::string render_copies(const Json& copies, const Painter& painter) {
    std::string out;
    bool first = true;
    for (const Json& copy : copies) {
        const std::string version = copy.value("version", "");
        out += painter.line(first ? "near" : "", say("{}{}: {}", copy.value("path", ""),
                                                     version.empty() ? "" : say(" ({})", version),
                                                     copy.value("why", "")));
        first = false;
    }
    return out;
}

// Launches, a line each. Where they are not pinned down, the kernels among them and how often.
std::string render_launches(const Json& evidence, const char* key, const char* label,
                            const Painter& painter) {
    const Json& suspects = evidence.at(key);
    std::string out;
    constexpr std::size_t kMost = 6;
    if (evidence.contains("kernels") && suspects.size() > kMost) {
        const Json& kernels = evidence.at("kernels");
        for (std::size_t i = 0; i < std::min(kMost, kernels.size()); ++i) {
            out += painter.line(i == 0 ? "kernels" : "", text_of(kernels[i]));
        }
        return kernels.size() <= kMost
                   ? out
                   : out + painter.line("", say("… and {} more", kernels.size() - kMost));
    }
    bool first = true;
    for (const Json& suspect : suspects) {
        const std::string shape = suspect.contains("grid")
                                      ? fmt::format(" <<<{}, {}>>>", suspect.value("grid", ""),
                                                    suspect.value("block", ""))
                                      : "";
        const std::string place =
            suspect.contains("python") ? say(", {}", suspect.value("python", "")) : "";
        out +=
            painter.line(first ? label : "", say("{}{}, stream {}{}", suspect.value("kernel", ""),
                                                 shape, suspect.value("stream", ""), place));
        first = false;
    }
    return out;
}

// Threads with an exception, by the core dump of the GPU: a line for each place.
std::string render_exceptions(const Json& exceptions, const Painter& painter) {
    std::string out;
    constexpr std::size_t kMost = 4;
    for (std::size_t i = 0; i < std::min(kMost, exceptions.size()); ++i) {
        const Json& exception = exceptions[i];
        const std::string source =
            exception.contains("source") ? say(" ({})", exception.value("source", "")) : "";
        const std::string thread =
            exception.contains("thread_index")
                ? say(", block {}, thread {}", exception.value("block_index", ""),
                      exception.value("thread_index", ""))
                : "";
        const int threads = exception.value("threads", 0);
        const std::string more = threads > 1 ? say(" and {} more", threads - 1) : "";
        out += painter.line(
            i == 0 ? "exception" : "",
            say("{}{}{}{}: {}", exception.value("place", exception.value("kernel", "")), source,
                thread, more, exception.value("meaning", "")));
    }
    return exceptions.size() <= kMost
               ? out
               : out + painter.line("", say("… and {} more", exceptions.size() - kMost));
}

std::string render_chain(const Json& chain, const Json& last, const Painter& painter) {
    std::string text;
    for (const Json& link : chain) {
        text += (text.empty() ? "" : " → ") + text_of(link);
    }
    if (!text.empty() && last.is_string()) {
        text += " → " + text_of(last);
    }
    return text.empty() ? "" : painter.line("chain", text);
}

struct Told {
    std::string label, text;
};

// Sizes with a unit, a count before and after in one line, long lists cut: `cudiag report --json`
// has them as they are.
Told told_as(const std::string& key, const Json& value, const Json& evidence) {
    const auto without = [&](std::string_view ending) {
        const bool has = key.size() > ending.size() &&
                         key.compare(key.size() - ending.size(), ending.size(), ending) == 0;
        return has ? key.substr(0, key.size() - ending.size()) : std::string{};
    };
    if (const std::string what = without("_bytes"); !what.empty() && value.is_number()) {
        const auto bytes = value.get<std::uint64_t>();
        return bytes == 0 ? Told{} : Told{label_of(what), bytes_text(bytes)};
    }
    if (!without("_before").empty()) {
        return {};
    }
    if (const std::string what = without("_after"); !what.empty()) {
        const std::string before = text_of(evidence.value(what + "_before", Json{}));
        return {label_of(what), before + " → " + text_of(value)};
    }
    constexpr std::size_t kMost = 8;
    if (value.is_array() && value.size() > kMost) {
        const Json first(value.begin(), value.begin() + kMost);
        return {label_of(key), say("{}, … and {} more", text_of(first), value.size() - kMost)};
    }
    return {label_of(key), text_of(value)};
}

std::string render_evidence(const Json& evidence, const Painter& painter) {
    // These are told elsewhere in the block.
    static const std::set<std::string> told_elsewhere{
        "error",     "asked",    "chain",    "searched", "near_misses", "cause_slug", "library",
        "needed_by", "packages", "suspects", "kernels",  "unfinished",  "exceptions"};
    std::string out;
    if (evidence.contains("error")) {
        out += painter.line("error", text_of(evidence.at("error")));
    }
    if (evidence.contains("chain")) {
        out += render_chain(evidence.at("chain"), evidence.value("library", Json{}), painter);
    }
    if (evidence.contains("searched")) {
        out += render_search(evidence.at("searched"), painter);
    }
    if (evidence.contains("near_misses")) {
        out += render_copies(evidence.at("near_misses"), painter);
    }
    if (evidence.contains("suspects")) {
        out += render_launches(evidence, "suspects", "suspect", painter);
    }
    if (evidence.contains("unfinished")) {
        out += render_launches(evidence, "unfinished", "on the GPU", painter);
    }
    if (evidence.contains("exceptions")) {
        out += render_exceptions(evidence.at("exceptions"), painter);
    }
    if (!evidence.contains("chain") && evidence.contains("needed_by")) {
        out += painter.line("needed by", text_of(evidence.at("needed_by")));
    }
    std::string others;
    for (const auto& [key, value] : evidence.items()) {
        const auto [label, text] = told_as(key, value, evidence);
        if (told_elsewhere.count(key) > 0 || text.empty()) {
            continue;
        }
        // A label longer than its column goes before the text.
        const std::string left = spoken_label(label);
        others += text_width(left) < kLabelColumns
                      ? painter.spoken_line(left, text)
                      : painter.spoken_line("", say("{}: {}", left, text));
    }
    return out + others;
}

std::string render_where(const Finding& finding, const Painter& painter) {
    std::string out;
    constexpr std::size_t kFrames = 6;
    std::size_t shown = 0;
    for (const PythonFrame& frame : finding.python) {
        if (frame.file.rfind("<frozen", 0) == 0) {
            continue;  // importlib's own frames tell nothing
        }
        if (shown == kFrames) {
            break;
        }
        out += painter.line(shown == 0 ? "at" : "",
                            say("{}:{} in {}", frame.file, frame.line, frame.function));
        ++shown;
    }
    if (shown == 0 && !finding.native.empty()) {
        out += painter.line("at", fmt::format("{}+{:#x}", finding.native.front().module,
                                              finding.native.front().offset));
    }
    return out;
}

std::string render_fixes(const Finding& finding, const Painter& painter) {
    std::string out;
    for (const Fix& fix : finding.fixes) {
        const std::string mark = fix.command.empty() ? ""
                                 : fix.proved        ? painter.green(spoken(say(" [proved]")))
                                                     : spoken(say(" [not proved]"));
        const std::string label = spoken_label("fix");
        out += fmt::format(
            "  {}{}{}{}\n", painter.bold(label), padding(label, kLabelColumns),
            wrapped(printable(spoken(fix.text)), painter.width() - 14, kLabelColumns + 2), mark);
        if (!fix.command.empty()) {
            // Never wrapped: it is to be pasted.
            out += fmt::format("  {}$ {}\n", std::string(kLabelColumns, ' '),
                               painter.bold(printable(fix.command)));
        }
    }
    return out;
}

const Finding* find_id(const std::vector<Finding>& findings, const std::string& id) {
    for (const Finding& finding : findings) {
        if (finding.id == id) {
            return &finding;
        }
    }
    return nullptr;
}

// What a cause led to, each in a line; deeper consequences follow their own cause.
std::string render_consequences(const std::vector<Finding>& findings, const Finding& cause,
                                const Painter& painter, int depth = 0) {
    std::string out;
    for (const std::string& id : cause.cause_of) {
        const Finding* consequence = find_id(findings, id);
        if (consequence == nullptr || depth > 8) {
            continue;
        }
        const std::string text =
            consequence->slug == "hidden-cause"
                ? say("the error shown: {}",
                      consequence->evidence.value("visible_error", std::string{}))
                : consequence->title;
        out += painter.line("led to", say("{} [{}]", text, consequence->slug));
        out += render_consequences(findings, *consequence, painter, depth + 1);
    }
    return out;
}

std::string headline(const Finding& finding, const Painter& painter) {
    const std::string word = spoken_label(name_of(finding.severity));
    const std::string colour =
        finding.severity == Severity::error ? painter.red(word) : painter.yellow(word);
    return fmt::format("{} {} {}{}\n  {}\n", painter.bold("cudiag:"), colour,
                       painter.bold(finding.slug),
                       finding.confidence == Confidence::likely ? spoken(say(" (likely)")) : "",
                       painter.bold(wrapped(printable(spoken(finding.title)), painter.width(), 2)));
}

std::string time_text(std::uint64_t nanoseconds) {
    const auto seconds = static_cast<std::time_t>(nanoseconds / 1'000'000'000);
    std::tm parts{};
    localtime_r(&seconds, &parts);
    char text[32];
    return std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts) > 0 ? text : "";
}

std::string ending(const Process& process) {
    if (process.alive) {
        return say("still running");
    }
    switch (process.end) {
        case EndHow::none:
            return say("killed");
        case EndHow::abort:
            return "abort()";
        case EndHow::exec:
            return say("replaced by exec");
        default:
            return say("exit status {}", process.end_status);
    }
}

}  // namespace

Style style_for(int descriptor) {
    Style style;
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    const bool terminal = isatty(descriptor) == 1;
    style.colour = terminal && (no_color == nullptr || *no_color == '\0') &&
                   (term == nullptr || std::string{term} != "dumb");
    winsize size{};
    const char* columns = std::getenv("COLUMNS");
    if (terminal && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        style.width = size.ws_col;
    } else if (columns != nullptr && std::atoi(columns) > 0) {
        style.width = static_cast<std::size_t>(std::atoi(columns));
    }
    style.width = std::clamp<std::size_t>(style.width, 60, 160);
    return style;
}

std::string printable(const std::string& text) {
    std::string clean;
    clean.reserve(text.size());
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        clean += byte < 0x20 || byte == 0x7f ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
    }
    return clean;
}

std::string render_findings(const std::vector<Finding>& findings, const Style& style,
                            const std::string& run_directory) {
    const Painter painter{style};
    std::set<std::string> explained;
    for (const Finding& finding : findings) {
        explained.insert(finding.cause_of.begin(), finding.cause_of.end());
    }
    std::string out;
    for (const Finding& finding : findings) {
        if (explained.count(finding.id) > 0) {
            continue;
        }
        out += out.empty() ? "" : "\n";
        out += headline(finding, painter) + render_where(finding, painter) +
               render_evidence(finding.evidence, painter) +
               render_consequences(findings, finding, painter) + render_fixes(finding, painter);
        if (!finding.limits.empty()) {
            out += painter.line("limits", finding.limits);
        }
        out += painter.line(
            "more", fmt::format("cudiag explain {}{}", finding.slug,
                                run_directory.empty() ? "" : "; cudiag report " + run_directory));
    }
    return out;
}

std::string render_run(const Facts& facts, const Style& style) {
    const Painter painter{style};
    std::string out =
        fmt::format("{} {}\n", painter.bold(spoken_label("run")), facts.run_directory);
    for (const Process& process : facts.processes) {
        std::string command;
        for (const std::string& argument : process.argv) {
            command += (command.empty() ? "" : " ") + argument;
        }
        out +=
            painter.line(process.pid == process.root_pid ? "root" : "child",
                         say("{} {} — {}, {}", process.pid, command.empty() ? process.exe : command,
                             time_text(process.start_time_ns), ending(process)));
    }
    for (const std::string& unreadable : facts.unreadable) {
        out += painter.line("unreadable", unreadable);
    }
    return out;
}

}  // namespace cudiag
