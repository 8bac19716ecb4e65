// conda's database: PREFIX/conda-meta/NAME-VERSION-BUILD.json, each with its "files" relative to
// the prefix.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "diagnose/packages/databases.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

std::string text_of(const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

bool lists(const nlohmann::json& meta, const std::string& relative) {
    const auto files = meta.find("files");
    if (files == meta.end() || !files->is_array()) {
        return false;
    }
    for (const auto& file : *files) {
        if (file.is_string() && file.get_ref<const std::string&>() == relative) {
            return true;
        }
    }
    return false;
}

}  // namespace

std::string conda_prefix_of(const std::string& path) {
    for (fs::path at = fs::path{path}.parent_path(); at.has_relative_path();
         at = at.parent_path()) {
        std::error_code error;
        if (fs::is_directory(at / "conda-meta", error)) {
            return at.string();
        }
    }
    return {};
}

std::optional<Package> conda_owner(const std::string& prefix, const std::string& path) {
    const std::string relative = fs::path{path}.lexically_relative(prefix).string();
    // JSON of a big package is a megabyte: parse only what holds the name as it would stand in the
    // list.
    const std::string as_written =
        nlohmann::json(relative).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    for (const std::string& file : entries_ending(prefix + "/conda-meta", ".json")) {
        const std::string text = file_text(file);
        if (text.find(as_written) == std::string::npos) {
            continue;
        }
        const auto meta = nlohmann::json::parse(text, nullptr, false);
        if (meta.is_object() && lists(meta, relative)) {
            Package package;
            package.manager = PackageManager::conda;
            package.name = text_of(meta, "name");
            package.version = text_of(meta, "version");
            package.location = prefix;
            package.metadata = file;
            return package;
        }
    }
    return std::nullopt;
}

std::vector<ListedFile> conda_files(const Package& package) {
    std::vector<ListedFile> result;
    const auto meta = nlohmann::json::parse(file_text(package.metadata), nullptr, false);
    const auto files = meta.is_object() ? meta.find("files") : meta.end();
    if (!meta.is_object() || files == meta.end() || !files->is_array()) {
        return result;
    }
    for (const auto& file : *files) {
        if (file.is_string()) {
            result.push_back(
                {package.location + "/" + file.get<std::string>(), std::nullopt, false});
        }
    }
    return result;
}

}  // namespace cudiag
