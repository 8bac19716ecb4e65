// pip's database: *.dist-info (RECORD, METADATA, INSTALLER, direct_url.json: the "Recording
// installed projects" specification), *.egg-info (installed-files.txt), *.egg directories and
// *.egg-link files of setuptools.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "diagnose/packages/databases.h"
#include "diagnose/packages/requirements.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

std::string_view line_at(std::string_view text, std::size_t at) {
    const auto begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;  // npos + 1 is 0
    const auto end = text.find('\n', at);
    std::string_view line = text.substr(begin, end == std::string_view::npos ? end : end - begin);
    if (!line.empty() && line.back() == '\r') {
        line.remove_suffix(1);
    }
    return line;
}

// First field of a CSV line as RECORD writes it: quoted only if it holds a comma or a quote.
std::string first_field(std::string_view line) {
    if (line.empty() || line.front() != '"') {
        return std::string{line.substr(0, line.find(','))};
    }
    std::string field;
    for (std::size_t i = 1; i < line.size(); ++i) {
        if (line[i] == '"') {
            if (i + 1 >= line.size() || line[i + 1] != '"') {
                break;
            }
            ++i;
        }
        field += line[i];
    }
    return field;
}

std::optional<std::uint64_t> last_field_number(std::string_view line) {
    const auto comma = line.rfind(',');
    std::uint64_t number = 0;
    if (comma == std::string_view::npos) {
        return std::nullopt;
    }
    const char* end = line.data() + line.size();
    const auto [stop, error] = std::from_chars(line.data() + comma + 1, end, number);
    return error == std::errc{} && stop == end ? std::optional{number} : std::nullopt;
}

std::string joined(const std::string& base, const std::string& relative) {
    return (fs::path{base} / relative).lexically_normal().string();  // an absolute `relative` wins
}

// Value of a header of METADATA or PKG-INFO; headers end at the first empty line.
std::string header(std::string_view text, std::string_view key) {
    for (std::size_t at = 0; at < text.size() && text[at] != '\n';) {
        const auto end = std::min(text.find('\n', at), text.size());
        std::string_view line = text.substr(at, end - at);
        if (line.substr(0, key.size()) == key && line.substr(key.size(), 2) == ": ") {
            line.remove_prefix(key.size() + 2);
            return std::string{line.substr(0, line.find('\r'))};
        }
        at = end + 1;
    }
    return {};
}

std::string without_space(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
        text.pop_back();
    }
    return text;
}

bool is_dist_info(const std::string& metadata) {
    return fs::path{metadata}.extension() == ".dist-info";
}

// Name part of "nvidia_cusparse_cu12-12.3.1.170.dist-info".
std::string name_in(const std::string& metadata) {
    const std::string stem = fs::path{metadata}.stem().string();
    return normalised(stem.substr(0, stem.find('-')));
}

std::string version_in(const std::string& metadata) {
    const std::string stem = fs::path{metadata}.stem().string();
    const auto dash = stem.find('-');
    if (dash == std::string::npos) {
        return {};
    }
    const std::string rest = stem.substr(dash + 1);  // an egg-info goes on with "-py3.11"
    return rest.substr(0, rest.find('-'));
}

// Does direct_url.json (PEP 610) say that the package was installed in place?
std::string editable_source(const std::string& metadata) {
    const auto json =
        nlohmann::json::parse(file_text(metadata + "/direct_url.json", 1 << 20), nullptr, false);
    if (!json.is_object() || !json.contains("dir_info") || !json["dir_info"].is_object()) {
        return {};
    }
    const auto flag = json["dir_info"].find("editable");
    const auto url = json.find("url");
    if (flag == json["dir_info"].end() || *flag != true || url == json.end() || !url->is_string()) {
        return {};
    }
    constexpr std::string_view kScheme = "file://";
    const auto& text = url->get_ref<const std::string&>();
    return text.rfind(kScheme, 0) == 0 ? text.substr(kScheme.size()) : std::string{};
}

Package package_at(const std::string& site_packages, const std::string& metadata) {
    Package package;
    package.location = site_packages;
    package.metadata = metadata;
    std::error_code error;
    const bool directory = fs::is_directory(metadata, error);
    const std::string info = file_text(!directory               ? metadata
                                       : is_dist_info(metadata) ? metadata + "/METADATA"
                                                                : metadata + "/PKG-INFO");
    package.name = header(info, "Name");
    package.version = header(info, "Version");
    if (package.name.empty()) {
        package.name = name_in(metadata);
    }
    if (package.version.empty()) {
        package.version = version_in(metadata);
    }
    if (is_dist_info(metadata)) {
        package.installer = without_space(file_text(metadata + "/INSTALLER", 4096));
        package.editable = !editable_source(metadata).empty();
    }
    return package;
}

std::string list_of(const std::string& metadata) {
    return metadata + (is_dist_info(metadata) ? "/RECORD" : "/installed-files.txt");
}

// RECORD's paths start at site-packages, those of installed-files.txt at the egg-info directory.
std::string base_of(const std::string& site_packages, const std::string& metadata) {
    return is_dist_info(metadata) ? site_packages : metadata;
}

// A RECORD may have 15,000 lines: look for the file's bare name first and read only the lines that
// have it.
bool lists(const std::string& site_packages, const std::string& metadata, const std::string& path) {
    const std::string text = file_text(list_of(metadata));
    std::string name = fs::path{path}.filename().string();
    name.resize(
        std::min(name.size(), name.find('"')));  // what follows a quote is written differently
    if (name.empty()) {
        return false;
    }
    const std::string base = base_of(site_packages, metadata);
    for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
        if (joined(base, first_field(line_at(text, at))) == path) {
            return true;
        }
    }
    return false;
}

std::vector<std::string> metadata_in(const std::string& site_packages) {
    std::vector<std::string> all = entries_ending(site_packages, ".dist-info");
    for (std::string& egg : entries_ending(site_packages, ".egg-info")) {
        all.push_back(std::move(egg));
    }
    for (const std::string& egg : entries_ending(site_packages, ".egg")) {
        std::error_code error;
        if (fs::exists(egg + "/EGG-INFO/PKG-INFO", error)) {
            all.push_back(egg);
        }
    }
    return all;
}

// "nvidia" for SITE/nvidia/cusparse/lib/libcusparse.so.12; "" for what is not below SITE.
std::string top_directory(const std::string& site_packages, const std::string& path) {
    const fs::path relative = fs::path{path}.lexically_relative(site_packages);
    return relative.empty() ? std::string{} : relative.begin()->string();
}

std::optional<Package> package_of_egg(const std::string& site_packages, const std::string& path) {
    const std::string first = top_directory(site_packages, path);
    const std::string egg = site_packages + "/" + first;
    std::error_code error;
    if (fs::path{first}.extension() != ".egg" || !fs::exists(egg + "/EGG-INFO/PKG-INFO", error)) {
        return std::nullopt;
    }
    Package package = package_at(site_packages, egg + "/EGG-INFO");
    package.metadata = egg;
    return package;
}

}  // namespace

std::optional<Package> pip_owner(const std::string& site_packages, const std::string& path) {
    if (auto egg = package_of_egg(site_packages, path)) {
        return egg;
    }
    // nvidia/cusparse/lib/… is likely of nvidia-*, torch/lib/… of torch: those lists are opened
    // first.
    const std::string top = normalised(top_directory(site_packages, path));
    std::vector<std::string> candidates = metadata_in(site_packages);
    std::stable_partition(
        candidates.begin(), candidates.end(),
        [&top](const std::string& metadata) { return name_in(metadata).rfind(top, 0) == 0; });
    for (const std::string& metadata : candidates) {
        if (lists(site_packages, metadata, path)) {
            return package_at(site_packages, metadata);
        }
    }
    return std::nullopt;
}

std::optional<Package> editable_owner(const std::string& site_packages, const std::string& path) {
    const auto below = [&path](const std::string& directory) {
        return directory.size() > 1 && path.rfind(directory + "/", 0) == 0;
    };
    for (const std::string& metadata : entries_ending(site_packages, ".dist-info")) {
        if (below(editable_source(metadata))) {
            return package_at(site_packages, metadata);
        }
    }
    for (const std::string& link : entries_ending(site_packages, ".egg-link")) {
        const std::string text = file_text(link, 1 << 16);
        const std::string source = without_space(text.substr(0, text.find('\n')));
        if (below(source)) {
            const auto infos = entries_ending(source, ".egg-info");
            Package package = package_at(site_packages, infos.empty() ? link : infos.front());
            package.metadata = link;
            package.editable = true;
            return package;
        }
    }
    return std::nullopt;
}

std::vector<ListedFile> pip_files(const Package& package) {
    std::vector<ListedFile> files;
    const std::string text = file_text(list_of(package.metadata));
    const std::string base = base_of(package.location, package.metadata);
    const std::string inside = package.location + "/";
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view line = line_at(text, at);
        at = std::min(text.find('\n', at), text.size()) + 1;
        if (line.empty()) {
            continue;
        }
        ListedFile file{joined(base, first_field(line)), last_field_number(line), false};
        file.outside = file.path.rfind(inside, 0) != 0;
        files.push_back(std::move(file));
    }
    return files;
}

std::vector<Package> pip_packages(const std::string& site_packages,
                                  const std::vector<std::string>& names) {
    std::vector<std::string> wanted;
    wanted.reserve(names.size());
    for (const std::string& name : names) {
        wanted.push_back(normalised(name));
    }
    std::vector<Package> packages;
    for (const std::string& metadata : metadata_in(site_packages)) {
        if (!wanted.empty() &&
            std::find(wanted.begin(), wanted.end(), name_in(metadata)) == wanted.end()) {
            continue;
        }
        const bool egg = fs::path{metadata}.extension() == ".egg";
        packages.push_back(package_at(site_packages, egg ? metadata + "/EGG-INFO" : metadata));
        packages.back().metadata = metadata;
    }
    std::stable_sort(packages.begin(), packages.end(), [](const Package& a, const Package& b) {
        return normalised(a.name) < normalised(b.name);
    });
    return packages;
}

std::optional<Package> pip_package(const std::string& site_packages, const std::string& name) {
    const std::vector<Package> found = pip_packages(site_packages, {name});
    return found.empty() ? std::nullopt : std::optional{found.front()};
}

}  // namespace cudiag
