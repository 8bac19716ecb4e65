#include "diagnose/packages/requirements.h"

#include <cctype>
#include <filesystem>
#include <fstream>

namespace cudiag {
namespace {

namespace fs = std::filesystem;

std::string metadata_path(const Package& package) {
    const std::string wanted = normalised(package.name);
    if (fs::path{package.metadata}.extension() == ".dist-info") {
        return package.metadata + "/METADATA";
    }
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(package.location, error)) {
        const std::string name = entry.path().filename().string();
        const auto dash = name.find('-');
        if (dash != std::string::npos && entry.path().extension() == ".dist-info" &&
            normalised(name.substr(0, dash)) == wanted) {
            return (entry.path() / "METADATA").string();
        }
    }
    return {};
}

// "nvidia-nccl-cu13 (==2.29.7) ; platform_system == 'Linux'" -> name, "==2.29.7"
std::optional<Requirement> parse_requirement(std::string text) {
    const auto marker = text.find(';');
    if (marker != std::string::npos) {
        if (text.find("extra ==", marker) != std::string::npos) {
            return std::nullopt;
        }
        text.erase(marker);
    }
    std::size_t end = 0;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 ||
                                 text[end] == '-' || text[end] == '_' || text[end] == '.')) {
        ++end;
    }
    Requirement requirement{normalised(text.substr(0, end)), {}};
    std::size_t at = end;
    if (at < text.size() && text[at] == '[') {  // extras of the wanted package
        at = text.find(']', at);
        at = at == std::string::npos ? text.size() : at + 1;
    }
    for (; at < text.size(); ++at) {
        const char c = text[at];
        if (c != ' ' && c != '(' && c != ')') {
            requirement.spec += c;
        }
    }
    return requirement;
}

}  // namespace

std::string normalised(const std::string& name) {
    std::string result;
    for (const char c : name) {
        if (c == '-' || c == '_' || c == '.') {
            if (!result.empty() && result.back() != '-') {
                result += '-';
            }
        } else {
            result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        }
    }
    return result;
}

std::vector<Requirement> requirements_of(const Package& package) {
    std::vector<Requirement> requirements;
    if (package.manager != PackageManager::pip) {
        return requirements;
    }
    std::ifstream file{metadata_path(package)};
    constexpr std::string_view kKey = "Requires-Dist: ";
    for (std::string line; std::getline(file, line) && !line.empty();) {
        if (line.rfind(kKey, 0) == 0) {
            if (auto requirement = parse_requirement(line.substr(kKey.size()))) {
                requirements.push_back(std::move(*requirement));
            }
        }
    }
    return requirements;
}

std::optional<Requirement> requirement_on(const Package& package, const std::string& name) {
    const std::string wanted = normalised(name);
    for (Requirement& requirement : requirements_of(package)) {
        if (requirement.name == wanted) {
            return std::move(requirement);
        }
    }
    return std::nullopt;
}

}  // namespace cudiag
