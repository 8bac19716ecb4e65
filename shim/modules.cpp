#include "shim/modules.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/keep_errno.h"
#include "shim/loaded_object.h"
#include "shim/process_identity.h"
#include "shim/session.h"
#include "shim/text.h"

namespace cudiag {
namespace {

constexpr size_t kPath = 4096;

// Base names begin so. Whoever maps one of these and fails is worth a look at the libraries in the
// process.
constexpr const char* kCudaLibraries[] = {
    "libcudart.so", "libcublas",  "libcudnn",      "libnccl.so",     "libcusparse",
    "libcufft",     "libcurand",  "libcusolver",   "libnvrtc",       "libnvJitLink",
    "libcupti",     "libcuda.so", "libtorch_cuda", "libnvidia-ml.so"};

// What lists may take of a log: failures, Python frames and the end must find room behind them.
constexpr uint64_t kMostBytes = Capacity{}.log_bytes / 8 * 5;

uint64_t snapshots = 0;       // written so far
uint64_t bytes = 0;           // that they took, roughly
bool writing = false;         // a thread is at it; another then refers to the list before
unsigned long long adds = 0;  // of the loader, when the last one was written
unsigned long long subs = 0;

const char* base_name(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash == nullptr ? path : slash + 1;
}

bool file_of(const char* path, struct stat* status) {
    return syscall(SYS_newfstatat, AT_FDCWD, path, status, 0) == 0;
}

struct Listing {
    uint64_t index;
    bool first;
};

int write_module(struct dl_phdr_info* info, size_t /*size*/, void* data) {
    auto& listing = *static_cast<Listing*>(data);
    static char exe[kPath];
    const char* path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
    if (*path == '\0' && listing.first) {  // the executable has no name in the link map
        const long got = readlink("/proc/self/exe", exe, sizeof exe - 1);
        exe[got > 0 ? got : 0] = '\0';
        path = exe;
    }
    listing.first = false;

    struct stat status {};

    if (*path == '\0' || !file_of(path, &status)) {
        status = {};
    }
    const size_t length = strlen(path);
    constexpr uint64_t kEntry = 160;  // heads and numbers of an entry
    bytes += kEntry + length;
    FieldValue fields[7] = {FieldValue::of(Field::path, path, length),
                            FieldValue::of(Field::index, listing.index++),
                            FieldValue::of(Field::base, static_cast<uint64_t>(info->dlpi_addr)),
                            FieldValue::of(Field::tls_bytes, tls_bytes_of(*info)),
                            FieldValue::of(Field::device, static_cast<uint64_t>(status.st_dev)),
                            FieldValue::of(Field::inode, static_cast<uint64_t>(status.st_ino)),
                            FieldValue::of(Field::root, uint64_t{1})};
    (void)note(EntryKind::module, fields, holds_this_code(*info) ? 7 : 6);
    return 0;
}

int read_counts(struct dl_phdr_info* info, size_t size, void* data) {
    auto* counts = static_cast<unsigned long long*>(data);
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
        counts[0] = info->dlpi_adds;
        counts[1] = info->dlpi_subs;
    }
    return 1;
}

struct Holder {
    uintptr_t address;
    char* path;
    size_t size;
    uint64_t offset;
};

int find_holder(struct dl_phdr_info* info, size_t /*size*/, void* data) {
    auto& holder = *static_cast<Holder*>(data);
    if (!holds_address(*info, holder.address)) {
        return 0;
    }
    holder.offset = holder.address - info->dlpi_addr;
    size_t length = strlen(info->dlpi_name);
    if (length == 0) {
        const long got = readlink("/proc/self/exe", holder.path, holder.size - 1);
        holder.path[got > 0 ? got : 0] = '\0';
    } else {
        length = length < holder.size - 1 ? length : holder.size - 1;
        memcpy(holder.path, info->dlpi_name, length);
        holder.path[length] = '\0';
    }
    return 1;
}

struct Wanted {
    const char* name;
    bool by_path;
    bool has_file;
    struct stat file;
};

int matches(struct dl_phdr_info* info, size_t /*size*/, void* data) {
    const auto& wanted = *static_cast<const Wanted*>(data);
    const char* path = info->dlpi_name;
    if (path == nullptr || *path == '\0') {
        return 0;
    }
    if (strcmp(path, wanted.name) == 0) {
        return 1;
    }
    if (!wanted.by_path) {
        const char* soname = soname_of(*info);
        return strcmp(base_name(path), wanted.name) == 0 ||
                       (soname != nullptr && strcmp(soname, wanted.name) == 0)
                   ? 1
                   : 0;
    }

    struct stat status {};

    return wanted.has_file && file_of(path, &status) && status.st_dev == wanted.file.st_dev &&
                   status.st_ino == wanted.file.st_ino
               ? 1
               : 0;
}

int is_cuda(struct dl_phdr_info* info, size_t /*size*/, void* /*data*/) {
    const char* name = base_name(info->dlpi_name == nullptr ? "" : info->dlpi_name);
    for (const char* library : kCudaLibraries) {
        if (strncmp(name, library, strlen(library)) == 0) {
            return 1;
        }
    }
    return 0;
}

}  // namespace

void forget_modules() {
    snapshots = 0;
    bytes = 0;
    adds = subs = 0;
    writing = false;
}

uint64_t note_modules() {
    const KeepErrno keep;
    unsigned long long counts[2] = {0, 0};
    (void)dl_iterate_phdr(read_counts, counts);
    const bool same = counts[0] != 0 && counts[0] == adds && counts[1] == subs;
    if (snapshots > 0 && (same || bytes > kMostBytes)) {
        return snapshots;
    }
    if (__atomic_exchange_n(&writing, true, __ATOMIC_ACQUIRE)) {
        return __atomic_load_n(&snapshots, __ATOMIC_ACQUIRE);
    }
    Listing listing{0, true};
    (void)dl_iterate_phdr(write_module, &listing);
    const FieldValue fields[] = {FieldValue::of(Field::snapshot, snapshots + 1),
                                 FieldValue::of(Field::index, listing.index)};
    (void)note(EntryKind::snapshot, fields, 2);
    adds = counts[0];
    subs = counts[1];
    const uint64_t number = __atomic_add_fetch(&snapshots, 1, __ATOMIC_ACQ_REL);
    __atomic_store_n(&writing, false, __ATOMIC_RELEASE);
    return number;
}

bool module_holding(uintptr_t address, char* path, size_t size, uint64_t* offset) {
    const KeepErrno keep;
    Holder holder{address, path, size, 0};
    path[0] = '\0';
    const bool found = dl_iterate_phdr(find_holder, &holder) != 0;
    *offset = holder.offset;
    return found;
}

bool is_mapped(const char* name) {
    const KeepErrno keep;
    Wanted wanted{name, strchr(name, '/') != nullptr, false, {}};
    wanted.has_file = wanted.by_path && file_of(name, &wanted.file);
    return dl_iterate_phdr(matches, &wanted) != 0;
}

bool is_mapped_anywhere(const char* path) {
    const KeepErrno keep;
    char line_end[1024];
    Text text{line_end, sizeof line_end};
    text.add(*path == '/' ? "" : "/").add(path).add("\n");
    return !text.cut() && file_holds("/proc/self/maps", line_end);
}

bool is_program(const char* name) {
    const KeepErrno keep;
    char command[1024];
    return read_file("/proc/self/cmdline", command, sizeof command) > 0 &&
           strcmp(command, name) == 0;
}

bool has_cuda_library() {
    return dl_iterate_phdr(is_cuda, nullptr) != 0;
}

}  // namespace cudiag
