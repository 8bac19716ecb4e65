#include "shim/limits.h"

#include <stddef.h>
#include <string.h>
#include <sys/resource.h>

#include "shim/process_identity.h"
#include "shim/text.h"

namespace cudiag {
namespace {

constexpr size_t kPath = 1024;
constexpr uint64_t kUnlimited = uint64_t{1} << 62;  // cgroup v1 says so with LONG_MAX less a page

// The number in text after `name`, or 0 with *found false.
uint64_t number_after(const char* text, const char* name, bool* found) {
    const char* at = strstr(text, name);
    *found = at != nullptr;
    if (at == nullptr) {
        return 0;
    }
    at += strlen(name);
    while (*at == ' ' || *at == '\t' || *at == ':') {
        ++at;
    }
    uint64_t number = 0;
    for (; *at >= '0' && *at <= '9'; ++at) {
        number = number * 10 + static_cast<uint64_t>(*at - '0');
    }
    return number;
}

// A file of a cgroup directory, as text; false if it cannot be read.
bool read_in(const char* directory, const char* name, char* to, size_t size) {
    char path[kPath];
    Text text{path, sizeof path};
    text.add(directory).add("/").add(name);
    return !text.cut() && read_file(path, to, size) > 0;
}

// A file that holds one number, or "max"; 0 if there is no number.
uint64_t number_in(const char* directory, const char* name) {
    char text[64];
    bool found = false;
    return read_in(directory, name, text, sizeof text) ? number_after(text, "", &found) : 0;
}

// Cuts the last component; false at the mount point.
bool to_parent(char* directory, size_t mount) {
    char* slash = strrchr(directory, '/');
    if (slash == nullptr || static_cast<size_t>(slash - directory) < mount) {
        return false;
    }
    *slash = '\0';
    return strlen(directory) >= mount;
}

void lower(uint64_t* limit, uint64_t candidate) {
    if (candidate != 0 && candidate < kUnlimited && (*limit == 0 || candidate < *limit)) {
        *limit = candidate;
    }
}

// In a container the path may be the host's, and the mount point the container's own group.
void group_directory(const char* mount, const char* path, const char* file, char* to, size_t size) {
    char probe[64];
    Text{to, size}.add(mount).add(strcmp(path, "/") == 0 ? "" : path);
    if (!read_in(to, file, probe, sizeof probe)) {
        Text{to, size}.add(mount);
    }
}

// "4:pids,cpu:/path" or "0::/path": does the line name the controller?
bool names(const char* controllers, size_t length, const char* wanted) {
    const size_t size = strlen(wanted);
    for (size_t at = 0; at + size <= length; ++at) {
        const bool begins = at == 0 || controllers[at - 1] == ',';
        const bool ends = at + size == length || controllers[at + size] == ',';
        if (begins && ends && memcmp(controllers + at, wanted, size) == 0) {
            return true;
        }
    }
    return false;
}

}  // namespace

Limits::Limits() {
    struct rlimit limit {};

    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        mapped_limit_ = limit.rlim_cur;
    }
    if (getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        user_process_limit_ = limit.rlim_cur;
    }
    char groups[4096];
    if (read_file("/proc/self/cgroup", groups, sizeof groups) > 0) {
        char* unified = nullptr;
        for (char* line = groups; line != nullptr && *line != '\0';) {
            char* end = strchr(line, '\n');
            if (end != nullptr) {
                *end = '\0';
            }
            char* controllers = strchr(line, ':');
            char* path = controllers == nullptr ? nullptr : strchr(controllers + 1, ':');
            if (path != nullptr) {
                const auto length = static_cast<size_t>(path - controllers - 1);
                if (length == 0) {
                    unified = path + 1;
                } else if (names(controllers + 1, length, "memory")) {
                    read_memory(1, "/sys/fs/cgroup/memory", path + 1);
                } else if (names(controllers + 1, length, "pids")) {
                    read_processes("/sys/fs/cgroup/pids", path + 1);
                }
            }
            line = end == nullptr ? nullptr : end + 1;
        }
        if (unified != nullptr && version_ == 0) {
            read_memory(2, "/sys/fs/cgroup", unified);
            read_processes("/sys/fs/cgroup", unified);
        }
    }
}

void Limits::read_memory(int version, const char* mount, const char* path) {
    char directory[kPath];
    char text[4096];
    bool found = false;
    version_ = version;
    Text{cgroup_, sizeof cgroup_}.add(path);
    group_directory(mount, path, version == 1 ? "memory.limit_in_bytes" : "memory.max", directory,
                    sizeof directory);
    if (version == 1) {
        if (read_in(directory, "memory.oom_control", text, sizeof text)) {
            oom_kills_ = number_after(text, "oom_kill ", &knows_kills_);
        }
        if (read_in(directory, "memory.stat", text, sizeof text)) {
            lower(&memory_limit_, number_after(text, "hierarchical_memory_limit", &found));
        }
        memory_peak_ = number_in(directory, "memory.max_usage_in_bytes");
        return;
    }
    if (read_in(directory, "memory.events", text, sizeof text)) {
        oom_kills_ = number_after(text, "oom_kill ", &knows_kills_);
    }
    memory_peak_ = number_in(directory, "memory.peak");
    do {
        lower(&memory_limit_, number_in(directory, "memory.max"));
    } while (to_parent(directory, strlen(mount)));
}

void Limits::read_processes(const char* mount, const char* path) {
    char directory[kPath];
    char text[64];
    bool found = false;
    group_directory(mount, path, "pids.max", directory, sizeof directory);
    do {
        const uint64_t limit = number_in(directory, "pids.max");
        if (limit != 0 && read_in(directory, "pids.events", text, sizeof text)) {
            refused_ += number_after(text, "max ", &found);
        }
        lower(&process_limit_, limit);
    } while (to_parent(directory, strlen(mount)));
}

size_t Limits::fields(FieldValue* to) const {
    size_t count = 0;
    const auto add = [&](Field field, uint64_t number, bool known) {
        if (known) {
            to[count++] = FieldValue::of(field, number);
        }
    };
    if (cgroup_[0] != '\0') {
        to[count++] = FieldValue::of(Field::cgroup, cgroup_);
    }
    add(Field::cgroup_version, static_cast<uint64_t>(version_), version_ != 0);
    add(Field::memory_limit, memory_limit_, memory_limit_ != 0);
    add(Field::memory_peak, memory_peak_, memory_peak_ != 0);
    add(Field::oom_kills, oom_kills_, knows_kills_);
    add(Field::process_limit, process_limit_, process_limit_ != 0);
    add(Field::user_process_limit, user_process_limit_, user_process_limit_ != 0);
    add(Field::processes_refused, refused_, refused_ != 0);
    add(Field::mapped_limit, mapped_limit_, mapped_limit_ != 0);
    return count;
}

void read_peaks(uint64_t* memory, uint64_t* mapped) {
    char text[4096];
    constexpr uint64_t kKilobyte = 1024;
    bool found = false;
    *memory = *mapped = 0;
    if (read_file("/proc/self/status", text, sizeof text) > 0) {
        *memory = number_after(text, "VmHWM", &found) * kKilobyte;
        *mapped = number_after(text, "VmPeak", &found) * kKilobyte;
    }
}

}  // namespace cudiag
