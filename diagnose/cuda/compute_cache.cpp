#include "diagnose/cuda/compute_cache.h"

#include <unistd.h>

#include <charconv>
#include <filesystem>

#include "diagnose/say.h"
#include "diagnose/units.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

std::string variable(const Process& process, const char* name) {
    const auto found = process.environment.find(name);
    return found == process.environment.end() ? std::string{} : found->second;
}

std::uint64_t bytes_in(const fs::path& directory) {
    std::uint64_t bytes = 0;
    std::error_code error;
    constexpr int kMost = 100'000;
    int count = 0;
    for (fs::recursive_directory_iterator
             file{directory, fs::directory_options::skip_permission_denied, error},
         end;
         !error && file != end && count < kMost; file.increment(error), ++count) {
        std::error_code ignored;
        if (file->is_regular_file(ignored)) {
            const auto size = file->file_size(ignored);
            bytes += ignored ? 0 : size;
        }
    }
    return bytes;
}

// Itself, or where it would be made.
bool can_be_written(fs::path directory) {
    std::error_code error;
    while (!fs::exists(directory, error) && directory.has_parent_path() &&
           directory.parent_path() != directory) {
        directory = directory.parent_path();
    }
    return fs::is_directory(directory, error) && access(directory.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

bool ComputeCache::nearly_full() const {
    constexpr std::uint64_t kOf = 10;
    return limit_bytes && bytes >= *limit_bytes / kOf * (kOf - 1);
}

std::string ComputeCache::words() const {
    if (off) {
        return say("switched off (CUDA_CACHE_DISABLE=1)");
    }
    if (directory.empty()) {
        return say("not known where: neither CUDA_CACHE_PATH nor HOME was set");
    }
    const std::string limit = limit_bytes
                                  ? say("at most {} (CUDA_CACHE_MAXSIZE)", bytes_text(*limit_bytes))
                                  : say("at most what the driver gives it");
    return say("{}: {}{}, {}", directory, there ? bytes_text(bytes) : say("not there"),
               writable ? "" : say(", cannot be written"), limit);
}

ComputeCache compute_cache_of(const Process& process) {
    ComputeCache cache;
    cache.off = variable(process, "CUDA_CACHE_DISABLE") == "1";
    cache.directory = variable(process, "CUDA_CACHE_PATH");
    if (const std::string home = variable(process, "HOME");
        cache.directory.empty() && !home.empty()) {
        cache.directory = home + "/.nv/ComputeCache";
    }
    const std::string limit = variable(process, "CUDA_CACHE_MAXSIZE");
    std::uint64_t bytes = 0;
    const auto [end, error] = std::from_chars(limit.data(), limit.data() + limit.size(), bytes);
    if (!limit.empty() && error == std::errc{} && end == limit.data() + limit.size()) {
        cache.limit_bytes = bytes;
    }
    if (!cache.directory.empty()) {
        std::error_code ignored;
        cache.there = fs::is_directory(cache.directory, ignored);
        cache.writable = can_be_written(cache.directory);
        cache.bytes = cache.there ? bytes_in(cache.directory) : 0;
    }
    return cache;
}

}  // namespace cudiag
