// build-missing-header: a compiler tried one name in every include directory, found it nowhere, and
// ended. What it had looked for before and found later is no sign: a good build has some 44,000
// such misses.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

#include "diagnose/build/fixes.h"
#include "diagnose/build/rules.h"
#include "diagnose/build/words.h"
#include "diagnose/knowledge/toolchain.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct SearchedDirectory {
    std::string path;
    std::string why;
};

struct MissingInclude {
    std::string header;       // as in the #include
    std::string included_by;  // "file:line"
    std::vector<SearchedDirectory> searched;
};

bool is_noise(const std::string& path) {
    constexpr std::string_view kEndings[] = {".gch", ".mo", ".gcda", ".res", "/specs", ".dumpdir"};
    const std::string_view text = path;
    return text.rfind("/proc/", 0) == 0 || text.rfind("/sys/", 0) == 0 ||
           text.rfind("/dev/", 0) == 0 ||
           std::any_of(std::begin(kEndings), std::end(kEndings), [&](std::string_view ending) {
               return text.size() >= ending.size() &&
                      text.substr(text.size() - ending.size()) == ending;
           });
}

bool ends_with_name(const std::string& path, const std::string& name) {
    return path == name ||
           (path.size() > name.size() && path[path.size() - name.size() - 1] == '/' &&
            path.compare(path.size() - name.size(), name.size(), name) == 0);
}

std::string without_name(const std::string& path, const std::string& name) {
    if (path.size() <= name.size()) {
        return ".";
    }
    return path.substr(0, path.size() - name.size() - 1);
}

// Include directories that the command line and the environment name.
std::vector<SearchedDirectory> named_directories(const BuildCase& c) {
    std::vector<SearchedDirectory> directories;
    const auto add = [&](const std::string& directory, const std::string& why) {
        directories.push_back({absolute_path(directory, c.step.cwd), why});
    };
    for (const char* option : {"-I", "-isystem", "-iquote", "-idirafter"}) {
        for (const std::string& directory : values_of(c.step.argv, option)) {
            add(directory, say("{} of the command line", option));
        }
    }
    for (const char* name : {"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"}) {
        for (const std::string& directory : split(c.variable(name), ':')) {
            add(directory, name);
        }
    }
    return directories;
}

std::string why_searched(const std::string& directory, const std::string& includer,
                         const std::vector<SearchedDirectory>& named) {
    const auto found = std::find_if(
        named.begin(), named.end(),
        [&](const SearchedDirectory& candidate) { return candidate.path == directory; });
    if (found != named.end()) {
        return found->why;
    }
    return !includer.empty() && directory == directory_of(includer)
               ? say("directory of the including file")
               : say("built into the compiler");
}

// The line of an #include of `header` in a file; 0 if there is none, or if the file asks first
// whether there is such a header.
std::size_t line_of_include(const std::string& file, const std::string& header) {
    std::error_code error;
    constexpr std::uintmax_t kLargest = 8'000'000;
    if (!fs::is_regular_file(file, error) || fs::file_size(file, error) > kLargest) {
        return 0;
    }
    std::ifstream stream{file};
    std::string line;
    for (std::size_t number = 1; std::getline(stream, line); ++number) {
        const auto at = line.find(header);
        if (at == std::string::npos || at == 0) {
            continue;
        }
        const bool delimited = (line[at - 1] == '<' || line[at - 1] == '"') &&
                               at + header.size() < line.size() &&
                               (line[at + header.size()] == '>' || line[at + header.size()] == '"');
        if (!delimited) {
            continue;
        }
        if (line.find("__has_include") != std::string::npos) {
            return 0;
        }
        const auto hash = line.find_first_not_of(" \t");
        if (line[hash] == '#' && line.find("include") < at) {
            return number;
        }
    }
    return 0;
}

// The file that wants the header: the last that was opened and includes it. "" if none does.
std::string includer_of(const BuildCase& c, const std::string& header) {
    if (const auto given = values_of(c.step.argv, "-include");
        std::find(given.begin(), given.end(), header) != given.end()) {
        return say("the command line (-include)");
    }
    std::vector<std::string> files;
    for (auto it = c.step.opens.rbegin(); it != c.step.opens.rend(); ++it) {
        if (it->opened) {
            files.push_back(absolute_path(it->path, c.step.cwd));
        }
    }
    files.push_back(c.source());
    for (const std::string& file : files) {
        if (const std::size_t line = line_of_include(file, header); line != 0) {
            return fmt::format("{}:{}", file, line);
        }
    }
    return {};
}

// The misses at the end of the step's life that have one name; none if the step got on afterwards.
std::vector<std::string> last_misses(const BuildStep& step) {
    std::vector<std::string> misses;
    std::string name;
    for (auto it = step.opens.rbegin(); it != step.opens.rend(); ++it) {
        if (is_noise(it->path)) {
            continue;
        }
        if (it->opened) {
            // The compiler reads the including file once more, to show the line.
            if (!misses.empty()) {
                break;
            }
            continue;
        }
        if (name.empty()) {
            name = base_name(it->path);
        }
        if (base_name(it->path) != name) {
            break;
        }
        misses.push_back(it->path);
    }
    std::reverse(misses.begin(), misses.end());
    return misses;
}

// What was opened after the last miss: only the including file may be.
bool got_on(const BuildCase& c, const std::string& includer) {
    const std::string file = includer.substr(0, includer.rfind(':'));
    for (auto it = c.step.opens.rbegin(); it != c.step.opens.rend(); ++it) {
        if (is_noise(it->path)) {
            continue;
        }
        if (!it->opened) {
            return false;
        }
        if (absolute_path(it->path, c.step.cwd) != file) {
            return true;
        }
    }
    return false;
}

std::optional<MissingInclude> missing_include(const BuildCase& c) {
    const std::vector<std::string> misses = last_misses(c.step);
    if (misses.empty()) {
        return std::nullopt;
    }
    const std::vector<SearchedDirectory> named = named_directories(c);
    // The name is what follows an include directory: "ATen/cuda/X.h" of
    // "/torch/include/ATen/cuda/X.h".
    for (std::string header = base_name(misses.back());;) {
        const std::string includer = includer_of(c, header);
        if (!includer.empty() && !got_on(c, includer)) {
            MissingInclude missing{.header = header, .included_by = includer, .searched = {}};
            const std::string file = includer.substr(0, includer.rfind(':'));
            for (const std::string& miss : misses) {
                if (ends_with_name(miss, header)) {
                    const std::string directory =
                        absolute_path(without_name(miss, header), c.step.cwd);
                    missing.searched.push_back({directory, why_searched(directory, file, named)});
                }
            }
            return missing;
        }
        const std::string rest = without_name(misses.back(), header);
        if (rest.empty() || rest == "." || header.size() >= misses.back().size()) {
            return std::nullopt;
        }
        header = base_name(rest) + "/" + header;
    }
}

bool lies_in(const std::string& header, const std::vector<SearchedDirectory>& searched) {
    return std::any_of(searched.begin(), searched.end(), [&](const SearchedDirectory& directory) {
        std::error_code error;
        return fs::exists(directory.path + "/" + header, error);
    });
}

// Copies on this machine that were not searched: in toolkits and in wheels.
std::vector<std::string> copies_of(const BuildCase& c, const std::string& header) {
    std::vector<std::string> copies;
    const auto look = [&](const std::string& directory) {
        std::error_code error;
        const std::string file = directory + "/" + header;
        if (fs::exists(file, error) &&
            std::find(copies.begin(), copies.end(), file) == copies.end()) {
            copies.push_back(file);
        }
    };
    for (const Toolkit& toolkit : c.toolkits()) {
        look(toolkit.home + "/include");
    }
    for (const std::string& site : c.site_packages()) {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(site + "/nvidia", error)) {
            look(entry.path().string() + "/include");
        }
    }
    look("/usr/include");
    look("/usr/local/include");
    constexpr std::size_t kMost = 8;
    copies.resize(std::min(copies.size(), kMost));
    return copies;
}

// Toolkits that have all these headers and are of the release that the build is for.
const Toolkit* complete_toolkit(const std::vector<Toolkit>& toolkits,
                                const std::vector<std::string>& headers,
                                const std::string& release) {
    for (const Toolkit& toolkit : toolkits) {
        const bool complete =
            std::all_of(headers.begin(), headers.end(), [&](const std::string& header) {
                std::error_code error;
                return fs::exists(toolkit.home + "/include/" + header, error);
            });
        if (complete && (release.empty() || toolkit.release == release)) {
            return &toolkit;
        }
    }
    return nullptr;
}

std::vector<Fix> fixes_for(const BuildCase& c, const std::vector<std::string>& headers,
                           const std::vector<const HeaderOwner*>& owners,
                           const std::string& release) {
    std::vector<Fix> fixes;
    const bool cuda = std::all_of(owners.begin(), owners.end(),
                                  [](const HeaderOwner* owner) { return owner->cuda; });
    const std::vector<Toolkit> toolkits = c.toolkits();
    if (cuda && !owners.empty()) {
        if (const Toolkit* toolkit = complete_toolkit(toolkits, headers, release)) {
            fixes.push_back(fix_by_cuda_home(*toolkit));
        }
    }
    const std::vector<Fix> packages = fixes_by_packages(c, owners, release);
    fixes.insert(fixes.end(), packages.begin(), packages.end());
    return fixes;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) {
        text += (text.empty() ? "" : ", ") + word;
    }
    return text;
}

}  // namespace

std::optional<Finding> build_missing_header(const BuildCase& c) {
    const auto missing = missing_include(c);
    if (!missing) {
        return std::nullopt;
    }
    const std::string file = missing->included_by.substr(0, missing->included_by.rfind(':'));
    std::vector<std::string> headers{missing->header};
    std::vector<const HeaderOwner*> owners;
    const HeaderOwner* owner = header_owner(missing->header);
    if (owner != nullptr) {
        owners.push_back(owner);
    }
    if (const HeaderGroup* group = header_group(missing->header, file)) {
        for (const std::string& header : group->headers) {
            const HeaderOwner* other = header_owner(header);
            if (header == missing->header || other == nullptr ||
                lies_in(header, missing->searched)) {
                continue;
            }
            headers.push_back(header);
            if (std::find(owners.begin(), owners.end(), other) == owners.end()) {
                owners.push_back(other);
            }
        }
    }
    const std::vector<std::string> copies = copies_of(c, missing->header);
    if (owners.empty() && copies.empty()) {
        return std::nullopt;  // the compiler has said all that is known
    }
    const auto toolkit = c.toolkit();
    const std::string release = toolkit ? toolkit->release : "";
    const bool has_nvcc = toolkit && !toolkit->nvcc.empty();
    std::string title = say("{} is in none of the {} directories searched", missing->header,
                            missing->searched.size());
    if (owner != nullptr && owner->cuda && has_nvcc) {
        title = say("{}: the CUDA {} toolkit at {} has nvcc but not the headers of {}", title,
                    release, toolkit->home, say_known(owner->description));
    } else if (owner != nullptr) {
        title += say(": it belongs to {}", say_known(owner->description));
    }
    Finding finding = begin_finding(c, "build-missing-header", std::move(title));
    Json& evidence = finding.evidence;
    evidence["header"] = missing->header;
    evidence["included_by"] = missing->included_by;
    evidence["source"] = c.source();
    evidence["searched"] = Json::array();
    for (const SearchedDirectory& directory : missing->searched) {
        std::error_code error;
        evidence["searched"].push_back(
            {{"dir", directory.path},
             {"why", directory.why},
             {"result", fs::exists(directory.path, error) ? "absent" : say("no such directory")}});
    }
    evidence["compiler"] = c.step.exe;
    evidence["cuda_home"] = toolkit ? toolkit->home : c.variable("CUDA_HOME");
    evidence["cuda_release"] = release;
    evidence["also_missing"] = std::vector<std::string>{headers.begin() + 1, headers.end()};
    evidence["copies"] = copies;
    finding.fixes = fixes_for(c, headers, owners, release);
    evidence["packages"] = Json::array();
    for (const HeaderOwner* each : owners) {
        for (const Provider& provider : header_providers(*each, release, c.torch_version())) {
            evidence["packages"].push_back(provider.package + provider.spec);
        }
    }
    finding.limits =
        owners.empty()
            ? say("which package brings this header is not known here")
            : say("that no other header is missing after these is not known: {} were looked for",
                  joined(headers));
    return finding;
}

}  // namespace cudiag
