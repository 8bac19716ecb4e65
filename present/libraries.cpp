#include "present/libraries.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/say.h"
#include "present/painter.h"
#include "present/spoken.h"

namespace cudiag {
namespace {

using Json = nlohmann::ordered_json;

class TreeText {
  public:
    explicit TreeText(const Style& style) : painter_{style} {}

    std::string render(const TreeNode& root) {
        line("", root, true, true);
        return std::move(out_);
    }

  private:
    std::string found_text(const TreeNode& node) const {
        if (node.missing()) {
            return painter_.red(node.error.empty() ? spoken(say("not found"))
                                                   : printable(spoken(node.error)));
        }
        const SearchStep* step = node.matched();
        std::string rule = node.already_loaded ? say("already mapped")
                           : step != nullptr   ? why(*step)
                                               : "";
        return printable(node.path) +
               painter_.dim(rule.empty() ? "" : " [" + printable(spoken(rule)) + "]") +
               (node.elsewhere ? painter_.dim(" …") : "");
    }

    void line(const std::string& indent, const TreeNode& node, bool last, bool root) {
        const std::string branch = root ? "" : indent + (last ? "└── " : "├── ");
        const std::string below = root ? "" : indent + (last ? "    " : "│   ");
        out_ += node.name == node.path
                    ? fmt::format("{}{}\n", branch, printable(node.name))
                    : fmt::format("{}{} → {}\n", branch, printable(node.name), found_text(node));
        if (node.missing()) {
            for (const SearchStep& step : node.steps) {
                out_ += fmt::format("{}      {} {} ({})\n", below, printable(step.dir),
                                    spoken(step.result), printable(spoken(why(step))));
            }
        }
        for (const VersionClash& clash : node.clashes) {
            const std::string text = spoken(say("wants version {} of {}, which lacks it",
                                                clash.version, printable(clash.provider)));
            out_ += fmt::format("{}      {}\n", below,
                                clash.weak ? painter_.dim(text) : painter_.red(text));
        }
        for (const ShadowedCopy& copy : node.shadowed) {
            const std::string text = spoken(say("another copy is passed by: {} ({})",
                                                printable(copy.path), printable(copy.where)));
            out_ += fmt::format("{}      {}\n", below,
                                copy.own ? painter_.yellow(text) : painter_.dim(text));
        }
        for (std::size_t i = 0; i < node.children.size(); ++i) {
            line(below, node.children[i], i + 1 == node.children.size(), false);
        }
    }

    const Painter painter_;
    std::string out_;
};

}  // namespace

std::string render_tree(const TreeNode& root, const Style& style) {
    return TreeText{style}.render(root);
}

Json tree_json(const TreeNode& node) {
    Json json{{"name", node.name}, {"path", node.path}};
    if (node.missing()) {
        json["error"] = node.error;
        auto searched = Json::array();
        for (const SearchStep& step : node.steps) {
            searched.push_back({{"dir", step.dir}, {"why", why(step)}, {"result", step.result}});
        }
        json["searched"] = std::move(searched);
    } else if (const SearchStep* step = node.matched()) {
        json["why"] = why(*step);
    }
    auto clashes = Json::array();
    for (const VersionClash& clash : node.clashes) {
        clashes.push_back(
            {{"version", clash.version}, {"provider", clash.provider}, {"weak", clash.weak}});
    }
    json["version_clashes"] = std::move(clashes);
    auto shadowed = Json::array();
    for (const ShadowedCopy& copy : node.shadowed) {
        shadowed.push_back({{"path", copy.path}, {"where", copy.where}});
    }
    json["passed_by"] = std::move(shadowed);
    auto children = Json::array();
    for (const TreeNode& child : node.children) {
        children.push_back(tree_json(child));
    }
    json["needs"] = std::move(children);
    return json;
}

std::string render_device_code(const std::vector<DeviceCode>& code) {
    return code.empty() ? std::string{}
                        : spoken(say("device code: {}", device_code_words(code))) + "\n";
}

Json device_code_json(const std::vector<DeviceCode>& code) {
    auto list = Json::array();
    for (const DeviceCode& one : code) {
        list.push_back({{"name", one.name()},
                        {"kind", one.ptx   ? "ptx"
                                 : one.lto ? "lto"
                                           : "sass"},
                        {"sm", one.sm},
                        {"variant", one.variant},
                        {"ptx_version", printable(one.ptx_version)},
                        {"relocatable", one.relocatable}});
    }
    return list;
}

std::string render_mapped(const std::vector<MappedLibrary>& libraries, const Style& style) {
    const Painter painter{style};
    std::string out;
    for (const MappedLibrary& library : libraries) {
        out += fmt::format("{}{}\n", printable(library.path),
                           library.twice ? "  " + painter.yellow(spoken(say("mapped twice"))) : "");
        out +=
            fmt::format("    {}{}{}\n",
                        library.version.empty() ? spoken(say("version unknown")) : library.version,
                        library.package.empty() ? "" : ", ", library.package);
        if (!library.needed_by.empty()) {
            out += fmt::format(
                "    {}\n",
                wrapped(
                    printable(spoken(say("needed by {}",
                                         fmt::format("{}", fmt::join(library.needed_by, ", "))))),
                    style.width, 14));
        }
    }
    return out;
}

Json mapped_json(const std::vector<MappedLibrary>& libraries) {
    auto list = Json::array();
    for (const MappedLibrary& library : libraries) {
        list.push_back({{"path", library.path},
                        {"soname", library.soname},
                        {"version", library.version},
                        {"cuda", library.cuda},
                        {"package", library.package},
                        {"needed_by", library.needed_by},
                        {"twice", library.twice},
                        {"library", library.family},
                        {"since", library.since}});
    }
    return list;
}

std::string shortened(const std::string& path, std::size_t room) {
    if (path.size() <= room || room < 8) {
        return path;
    }
    // The end tells more: the package's directory and the file.
    const std::size_t head = (room - 1) / 4;
    return path.substr(0, head) + "…" + path.substr(path.size() - (room - 1 - head));
}

namespace {

std::string base_name(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string users_text(const std::vector<std::string>& users) {
    constexpr std::size_t kShown = 3;
    std::string text;
    for (std::size_t i = 0; i < std::min(kShown, users.size()); ++i) {
        text += (i == 0 ? "" : ", ") + base_name(users[i]);
    }
    if (users.size() > kShown) {
        text = say("{} and {} more", text, users.size() - kShown);
    }
    return spoken(users.empty() ? say("by dlopen") : say("needed by {}", text));
}

std::string version_text(const MappedLibrary& library) {
    return !library.since.empty()     ? spoken(say("file {}", library.since))
           : !library.version.empty() ? library.version
           : !library.cuda.empty()    ? "CUDA " + library.cuda
                                      : spoken_label("unknown");
}

std::string driver_text(const MappedDriver& driver) {
    if (driver.path.empty()) {
        return spoken(say("none mapped"));
    }
    return fmt::format("{}{}",
                       driver.release.empty() ? spoken(say("release not known")) : driver.release,
                       driver.cuda.empty() ? "" : ", CUDA " + driver.cuda);
}

// Ranks of a job have the same libraries: what is the same is shown once, for all of them.
struct Group {
    std::string pids;
    const ProcessLibraries* process = nullptr;
};

std::vector<Group> groups_of(const std::vector<ProcessLibraries>& processes) {
    std::vector<Group> groups;
    const auto contents = [](const ProcessLibraries& process) {
        return mapped_json(process.libraries).dump(-1, ' ', false, Json::error_handler_t::replace) +
               process.driver.path + process.driver.release + process.driver.cuda;
    };
    for (const ProcessLibraries& process : processes) {
        const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
            return contents(*group.process) == contents(process);
        });
        if (same == groups.end()) {
            groups.push_back({std::to_string(process.pid), &process});
        } else {
            same->pids += ", " + std::to_string(process.pid);
        }
    }
    return groups;
}

}  // namespace

std::string render_libraries(const std::vector<ProcessLibraries>& processes, const Style& style) {
    const Painter painter{style};
    std::string out;
    const std::string heading = spoken_label("libraries");
    for (const Group& group : groups_of(processes)) {
        const ProcessLibraries& process = *group.process;
        out += fmt::format("{}{} {}\n", out.empty() ? "" : "\n", painter.bold(heading),
                           wrapped(group.pids, style.width, text_width(heading) + 1));
        const std::string driver = spoken_label("driver");
        std::size_t names = text_width(driver);
        std::size_t versions = 0;
        for (const MappedLibrary& library : process.libraries) {
            names = std::max(names, base_name(library.path).size());
            versions = std::max(versions, text_width(version_text(library)));
        }
        const std::size_t room = style.width > 24 ? style.width - 4 : 20;
        const auto path_line = [&](const std::string& path) {
            out += fmt::format("    {}\n", painter.dim(shortened(printable(path), room)));
        };
        out += fmt::format("  {:<{}}  {}\n", driver, names, printable(driver_text(process.driver)));
        if (!process.driver.path.empty()) {
            path_line(process.driver.path);
        }
        for (const MappedLibrary& library : process.libraries) {
            const std::string twice = library.twice ? spoken(say("twice  ")) : "";
            const std::string mark = library.twice ? painter.yellow(twice) : "";
            out += fmt::format("  {:<{}}  {:<{}}  {}{}\n", printable(base_name(library.path)),
                               names, printable(version_text(library)), versions, mark,
                               wrapped(printable(users_text(library.needed_by)), style.width,
                                       names + versions + 6 + text_width(twice)));
            path_line(library.path);
        }
    }
    return out;
}

Json libraries_json(const std::vector<ProcessLibraries>& processes) {
    auto list = Json::array();
    for (const ProcessLibraries& process : processes) {
        list.push_back({{"pid", process.pid},
                        {"driver",
                         {{"path", process.driver.path},
                          {"release", process.driver.release},
                          {"cuda", process.driver.cuda}}},
                        {"libraries", mapped_json(process.libraries)}});
    }
    return list;
}

}  // namespace cudiag
