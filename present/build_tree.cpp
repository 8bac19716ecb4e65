#include "present/build_tree.h"

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <set>

#include "diagnose/say.h"
#include "present/spoken.h"

namespace cudiag {
namespace {

constexpr std::size_t kMostLines = 200;
constexpr std::size_t kNameColumn = 46;

class Tree {
  public:
    Tree(const Build& build, const Style& style) : build_{build}, style_{style} {
        for (const BuildStep& step : build.steps) {
            const BuildStep* parent = build.parent_of(step);
            children_[parent].push_back(&step);
        }
        choose();
    }

    std::string render() {
        const std::string heading = spoken_label("build");
        std::string out = fmt::format("  {}{:>{}}{:>10}  {}\n", heading, spoken_label("time"),
                                      kNameColumn + 10 - text_width(heading),
                                      spoken_label("memory"), spoken_label("what"));
        add_children(nullptr, "", out);
        if (left_out_ > 0) {
            out += fmt::format("  {}\n",
                               spoken(say("… and {} quick steps that went well", left_out_)));
        }
        return out;
    }

  private:
    static std::uint64_t duration(const BuildStep& step) {
        return step.end_ns > step.start_ns ? step.end_ns - step.start_ns : 0;
    }

    // Of a long build the steps that failed, those above them, and the longest of the others.
    void choose() {
        std::vector<const BuildStep*> by_time;
        by_time.reserve(build_.steps.size());
        for (const BuildStep& step : build_.steps) {
            by_time.push_back(&step);
        }
        std::stable_sort(
            by_time.begin(), by_time.end(), [](const BuildStep* a, const BuildStep* b) {
                return a->failed() != b->failed() ? a->failed() : duration(*a) > duration(*b);
            });
        for (const BuildStep* step : by_time) {
            if (shown_.size() >= kMostLines) {
                break;
            }
            for (const BuildStep* at = step; at != nullptr && shown_.insert(at).second;
                 at = build_.parent_of(*at)) {
            }
        }
        left_out_ = build_.steps.size() - shown_.size();
    }

    static std::string outcome(const BuildStep& step) {
        if (step.signal != 0) {
            const char* name = sigabbrev_np(step.signal);
            return name == nullptr ? spoken(say("signal {}", step.signal))
                                   : fmt::format("SIG{}", name);
        }
        if (step.how == EndHow::none) {
            return spoken(say("no end known"));
        }
        if (step.how == EndHow::exec) {
            return "";
        }
        return step.status == 0 ? "" : spoken(say("exit status {}", step.status));
    }

    // What the step worked on: its output, or its source.
    static std::string subject(const BuildStep& step) {
        std::string found;
        for (std::size_t i = 1; i < step.argv.size(); ++i) {
            const std::string& word = step.argv[i];
            if (word == "-o" && i + 1 < step.argv.size() &&
                step.argv[i + 1].rfind("/tmp/", 0) != 0) {
                return step.argv[i + 1];
            }
            for (const char* ending : {".cu", ".cpp", ".cc", ".c", ".cxx"}) {
                const std::size_t size = std::strlen(ending);
                if (word.size() > size && word.compare(word.size() - size, size, ending) == 0 &&
                    word.front() != '-') {
                    found = word;
                }
            }
        }
        const auto slash = found.rfind('/');
        return slash == std::string::npos ? found : found.substr(slash + 1);
    }

    void add(const BuildStep& step, const std::string& indent, const std::string& branch,
             std::string& out) {
        const bool failed = step.failed();
        const std::string name =
            fmt::format("{}{}{}{}", indent, branch, failed ? "✗ " : "", step.tool());
        std::string line = fmt::format("  {}{}", name, padding(name, kNameColumn));
        line += step.end_ns == 0
                    ? fmt::format("{:>10}", "")
                    : fmt::format("{:>8.2f} s", static_cast<double>(duration(step)) / 1e9);
        line += step.peak_bytes == 0
                    ? fmt::format("{:>10}", "")
                    : fmt::format("{:>7.0f} MB", static_cast<double>(step.peak_bytes) / 1e6);
        const std::string what = subject(step);
        const std::string end = outcome(step);
        line += "  " + printable(what) + (end.empty() ? "" : (what.empty() ? "" : "  ") + end);
        if (failed && style_.colour) {
            line = "\033[31m" + line + "\033[0m";
        }
        out += line + "\n";
    }

    void add_children(const BuildStep* parent, const std::string& indent, std::string& out,
                      int depth = 0) {
        std::vector<const BuildStep*> children;
        for (const BuildStep* child : children_[parent]) {
            if (shown_.count(child) > 0) {
                children.push_back(child);
            }
        }
        constexpr int kDeepest = 24;
        for (std::size_t i = 0; i < children.size() && depth < kDeepest; ++i) {
            const bool last = i + 1 == children.size();
            const bool top = parent == nullptr;
            add(*children[i], indent, top ? "" : last ? "└ " : "├ ", out);
            add_children(children[i], indent + (top ? "" : last ? "  " : "│ "), out, depth + 1);
        }
    }

    const Build& build_;
    const Style& style_;
    std::map<const BuildStep*, std::vector<const BuildStep*>> children_;
    std::set<const BuildStep*> shown_;
    std::size_t left_out_ = 0;
};

}  // namespace

std::string render_build(const Build& build, const Style& style) {
    return build.steps.empty() ? "" : Tree{build, style}.render();
}

}  // namespace cudiag
