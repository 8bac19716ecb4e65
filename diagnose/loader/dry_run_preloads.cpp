#include "diagnose/loader/dry_run_preloads.h"

#include <unistd.h>

#include <cstdlib>

namespace cudiag {
namespace {

constexpr std::size_t kLongestVariable = 120U << 10;  // MAX_ARG_STRLEN is 128 KiB
constexpr const char* kSeparators = " :";

}  // namespace

Preloads::~Preloads() {
    for (const auto& [directory, link] : links_) {
        unlink(link.c_str());
    }
    if (!temporary_.empty()) {
        rmdir(temporary_.c_str());
    }
}

bool Preloads::add(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string name = path.substr(slash + 1);
    if (name.find_first_of(kSeparators) != std::string::npos) {
        return false;
    }
    std::string shown = path;
    if (path.find_first_of(kSeparators) != std::string::npos) {
        const std::string link = linked(path.substr(0, slash));
        if (link.empty()) {
            return false;
        }
        shown = link + "/" + name;
    }
    paths_.push_back(shown);
    return true;
}

std::string Preloads::linked(const std::string& directory) {
    const auto known = links_.find(directory);
    if (known != links_.end()) {
        return known->second;
    }
    if (temporary_.empty()) {
        char pattern[] = "/tmp/cudiag-dry-XXXXXX";
        if (mkdtemp(pattern) == nullptr) {
            return {};
        }
        temporary_ = pattern;
    }
    const std::string link = temporary_ + "/" + std::to_string(links_.size());
    if (directory.empty() || directory.front() != '/' ||
        symlink(directory.c_str(), link.c_str()) != 0) {
        return {};
    }
    return links_.emplace(directory, link).first->second;
}

std::string Preloads::value() {
    std::size_t length = 0;
    for (const std::string& path : paths_) {
        length += path.size() + 1;
    }
    std::string value;
    for (const std::string& path : paths_) {
        const std::size_t slash = path.rfind('/');
        const bool shorten = length > kLongestVariable && slash != std::string::npos && slash > 40;
        const std::string link = shorten ? linked(path.substr(0, slash)) : "";
        value += (value.empty() ? "" : ":") + (link.empty() ? path : link + path.substr(slash));
    }
    return value;
}

std::string Preloads::original(std::string text) const {
    for (const auto& [directory, link] : links_) {
        for (std::size_t at = text.find(link + "/"); at != std::string::npos;
             at = text.find(link + "/", at + directory.size())) {
            text.replace(at, link.size(), directory);
        }
    }
    return text;
}

}  // namespace cudiag
