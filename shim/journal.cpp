#include "shim/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/journal.h"
#include "record/keep_errno.h"
#include "shim/run_directory.h"
#include "shim/text.h"

namespace cudiag {
namespace {

constexpr size_t kPath = 4096 + sizeof kJournalName;
constexpr int64_t kLong = int64_t{16} << 20;     // a build of some 2000 steps
constexpr int64_t kLongest = int64_t{24} << 20;  // what failures may add
constexpr int64_t kMostOfAnEntry = int64_t{1} << 18;

bool written = false;

bool path_of_journal(char* path, size_t size) {
    Text text{path, size};
    text.add(run_directory()).add("/").add(kJournalName);
    return !text.cut();
}

int open_journal(bool make) {
    char path[kPath];
    if (!path_of_journal(path, sizeof path)) {
        return -1;
    }
    constexpr int kFlags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
    int file = openat(AT_FDCWD, path, kFlags);
    if (file >= 0 || !make || errno != ENOENT) {
        return file;
    }
    const int directory = make_run_directory();
    if (directory >= 0) {
        file = openat(directory, kJournalName, kFlags | O_CREAT, 0600);
        (void)close(directory);
    }
    return file;
}

// Ours, and no longer than it may get: past RLIMIT_FSIZE a write raises SIGXFSZ.
bool may_grow(int file, bool only_for_a_tree) {
    struct stat status {};

    struct rlimit limit {};

    if (syscall(SYS_fstat, file, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_uid != geteuid() || status.st_size > (only_for_a_tree ? kLong : kLongest)) {
        return false;
    }
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           static_cast<uint64_t>(status.st_size + kMostOfAnEntry) < limit.rlim_cur;
}

}  // namespace

bool has_journal() {
    const KeepErrno keep;
    char path[kPath];
    return path_of_journal(path, sizeof path) && access(path, F_OK) == 0;
}

bool write_journal(EntryKind kind, const FieldValue* fields, size_t count, bool make) {
    const KeepErrno keep;
    const int file = open_journal(make);
    if (file < 0) {
        return false;
    }
    const bool done = may_grow(file, make) && append_to_journal(file, kind, fields, count);
    (void)close(file);
    if (done) {
        written = true;
    }
    return done;
}

bool journal_was_written() {
    return written;
}

void remove_journal() {
    const KeepErrno keep;
    const int at = open_run_directory();
    if (at >= 0) {
        (void)unlinkat(at, kJournalName, 0);
        (void)close(at);
        (void)rmdir(run_directory());  // fails, rightly, while there are recordings
    }
}

}  // namespace cudiag
