#include "record/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/keep_errno.h"

namespace cudiag {
namespace {

constexpr std::uint64_t kPage = 4096;

bool is_power_of_two(std::uint32_t number) {
    return number != 0 && (number & (number - 1)) == 0;
}

std::uint64_t page_rounded(std::uint64_t bytes) {
    return (bytes + kPage - 1) / kPage * kPage;
}

std::uint64_t padded(std::uint64_t bytes) {
    return (bytes + 7U) & ~std::uint64_t{7};
}

std::uint64_t ring_bytes(std::uint32_t records) {
    return sizeof(RingHead) + std::uint64_t{records} * sizeof(HotRecord);
}

// Growing a file past RLIMIT_FSIZE raises SIGXFSZ, which would end the host.
bool over_file_limit(std::uint64_t bytes) {
    struct rlimit limit {};

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           limit.rlim_cur < bytes;
}

OpenResult result_of(int error) {
    switch (error) {
        case EEXIST:
            return OpenResult::exists;
        case ENOSPC:
        case EDQUOT:
            return OpenResult::no_space;
        case EFBIG:
            return OpenResult::over_limit;
        case EACCES:
        case EPERM:
        case EROFS:
            return OpenResult::no_permission;
        default:
            return OpenResult::failed;
    }
}

// Blocks first: a store into a hole of a full file system is a SIGBUS. MAP_FAILED, with *error, if
// that cannot be.
void* map_blocks(int file, std::uint64_t offset, std::uint64_t bytes, int* error) {
    *error = EINTR;
    for (int tries = 0; *error == EINTR && tries < 16; ++tries) {
        *error = posix_fallocate(file, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    }
    void* map = MAP_FAILED;
    if (*error == 0) {
        map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                   static_cast<off_t>(offset));
        if (map == MAP_FAILED) {
            *error = errno;
        }
    }
    return map;
}

}  // namespace

std::uint64_t realtime_ns() {
    struct timespec now {};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000U +
           static_cast<std::uint64_t>(now.tv_nsec);
}

FieldValue FieldValue::of(Field field, const void* bytes, std::size_t size) {
    if (bytes == nullptr) {
        return {"", 0, 0, field};
    }
    constexpr std::size_t kMost = UINT32_MAX;
    return {bytes, 0, static_cast<std::uint32_t>(size < kMost ? size : kMost), field};
}

FieldValue FieldValue::of(Field field, const char* text) {
    return of(field, static_cast<const void*>(text), text == nullptr ? 0 : strlen(text));
}

FieldValue FieldValue::of(Field field, std::uint64_t number) {
    return {nullptr, number, sizeof number, field};
}

OpenResult Writer::open(int directory, const char* name, const Capacity& capacity,
                        const Identity& identity, int* error) {
    const KeepErrno keep;
    *error = 0;
    const std::uint64_t log_bytes = page_rounded(capacity.log_bytes);
    const std::uint64_t log_offset = kHeaderBytes + kProgressBytes;
    const std::uint64_t rings_offset = log_offset + log_bytes;
    const std::uint32_t ring_count = capacity.ring_records == 0 ? 0 : capacity.ring_count;
    const std::uint64_t bytes = rings_offset + ring_count * ring_bytes(capacity.ring_records);
    if (ring_count != 0 && !is_power_of_two(capacity.ring_records)) {
        *error = EINVAL;
        return OpenResult::failed;
    }
    if (over_file_limit(bytes)) {
        *error = EFBIG;
        return OpenResult::over_limit;
    }
    const int file =
        openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) {
        *error = errno;
        return result_of(*error);
    }
    void* const map = map_blocks(file, 0, bytes, error);
    (void)close(file);
    if (map == MAP_FAILED) {
        (void)unlinkat(directory, name, 0);
        return result_of(*error);
    }
    auto* header = static_cast<Header*>(map);
    header->version = kFormatVersion;
    header->byte_order = kByteOrder;
    header->file_bytes = bytes;
    header->progress_offset = kHeaderBytes;
    header->log_offset = log_offset;
    header->log_bytes = log_bytes;
    header->rings_offset = rings_offset;
    header->ring_count = ring_count;
    header->ring_records = capacity.ring_records;
    header->pid = identity.pid;
    header->ppid = identity.ppid;
    header->root_pid = identity.root_pid;
    header->uid = static_cast<std::uint32_t>(geteuid());
    header->start_ticks = identity.start_ticks;
    header->root_start_ticks = identity.root_start_ticks;
    header->open_realtime_ns = realtime_ns();
    header->open_ticks = read_ticks();
    header->last_realtime_ns = header->open_realtime_ns;
    header->last_ticks = header->open_ticks;
    ring_records_ = capacity.ring_records;
    rings_ = ring_count == 0 ? nullptr : static_cast<char*>(map) + rings_offset;
    // The magic last: a reader never takes a half-made header for a recording.
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(header->magic, kMagic, sizeof kMagic);
    header_ = header;
    return OpenResult::ok;
}

bool Writer::append(EntryKind kind, const FieldValue* fields, std::size_t count) {
    if (header_ == nullptr) {
        return false;
    }
    const KeepErrno keep;
    std::uint64_t size = sizeof(EntryHead);
    for (std::size_t i = 0; i < count; ++i) {
        size += sizeof(FieldHead) + padded(fields[i].size);
    }
    // An entry that does not fit leaves the tail where it is: a shorter one may still find room. No
    // entry's length can be told in 32 bits beyond UINT32_MAX.
    std::uint64_t at = __atomic_load_n(&header_->log_tail, __ATOMIC_RELAXED);
    do {
        if (size > UINT32_MAX || at > header_->log_bytes || size > header_->log_bytes - at) {
            __atomic_fetch_add(&header_->log_dropped, 1, __ATOMIC_RELAXED);
            return false;
        }
    } while (!__atomic_compare_exchange_n(&header_->log_tail, &at, at + size, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    char* entry = reinterpret_cast<char*>(header_) + header_->log_offset + at;
    // The length first: whoever dies inside an entry leaves either nothing but zeros or a length,
    // and a reader can step over both to the entries of other threads.
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(entry + offsetof(EntryHead, bytes)),
                     static_cast<std::uint32_t>(size), __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    EntryHead head{};
    head.bytes = static_cast<std::uint32_t>(size);
    head.kind = static_cast<std::uint16_t>(kind);
    head.tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
    head.realtime_ns = realtime_ns();
    const std::uint64_t ticks = read_ticks();
    memcpy(entry, &head, sizeof head);
    char* to = entry + sizeof head;
    for (std::size_t i = 0; i < count; ++i) {
        const FieldHead field{static_cast<std::uint16_t>(fields[i].field), 0, fields[i].size};
        memcpy(to, &field, sizeof field);
        to += sizeof field;
        const void* bytes = fields[i].bytes == nullptr ? &fields[i].number : fields[i].bytes;
        memcpy(to, bytes, fields[i].size);
        to += padded(fields[i].size);
    }
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(entry), kCommitted ^ head.bytes,
                     __ATOMIC_RELEASE);
    __atomic_store_n(&header_->last_ticks, ticks, __ATOMIC_RELAXED);
    __atomic_store_n(&header_->last_realtime_ns, head.realtime_ns, __ATOMIC_RELAXED);
    return true;
}

OpenResult Writer::add_rings(int directory, const char* name, std::uint32_t count,
                             std::uint32_t records, int* error) {
    const KeepErrno keep;
    *error = 0;
    if (header_ == nullptr || has_rings() || count == 0 || !is_power_of_two(records)) {
        return OpenResult::failed;
    }
    const std::uint64_t bytes = count * ring_bytes(records);
    if (over_file_limit(header_->rings_offset + bytes)) {
        *error = EFBIG;
        return OpenResult::over_limit;
    }
    const int file = openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) {
        *error = errno;
        return result_of(*error);
    }
    void* const map = map_blocks(file, header_->rings_offset, bytes, error);
    if (map == MAP_FAILED) {
        (void)!ftruncate(file, static_cast<off_t>(header_->rings_offset));
    }
    (void)close(file);
    if (map == MAP_FAILED) {
        return result_of(*error);
    }
    auto* const last =
        reinterpret_cast<RingHead*>(static_cast<char*>(map) + (count - 1) * ring_bytes(records));
    last->tid = count > 1 ? kSharedRing : 0;
    ring_records_ = records;
    header_->ring_records = records;
    header_->file_bytes = header_->rings_offset + bytes;
    __atomic_store_n(&header_->ring_count, count, __ATOMIC_RELEASE);
    __atomic_store_n(&rings_, static_cast<char*>(map), __ATOMIC_RELEASE);
    return OpenResult::ok;
}

RingHead* Writer::claim_ring() {
    if (header_ == nullptr || !has_rings()) {
        return nullptr;
    }
    const KeepErrno keep;
    const auto tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
    for (std::uint32_t i = 0; i < header_->ring_count; ++i) {
        auto* ring = reinterpret_cast<RingHead*>(rings_ + i * ring_bytes(ring_records_));
        std::uint32_t nobody = 0;
        if (__atomic_compare_exchange_n(&ring->tid, &nobody, tid, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED) ||
            nobody == kSharedRing) {
            return ring;
        }
    }
    __atomic_fetch_add(&header_->rings_refused, 1, __ATOMIC_RELAXED);
    return nullptr;
}

void Writer::append_hot(RingHead* ring, std::uint16_t kind, std::uint16_t flags,
                        const std::uint64_t (&words)[6]) {
    append_hot_record(ring, ring_records_ - 1, kind, flags, words);
}

ProgressSlot* Writer::progress() const {
    return header_ == nullptr ? nullptr
                              : reinterpret_cast<ProgressSlot*>(reinterpret_cast<char*>(header_) +
                                                                header_->progress_offset);
}

void Writer::mark_end(EndHow how, int status) {
    if (header_ == nullptr) {
        return;
    }
    const KeepErrno keep;
    const auto known = static_cast<EndHow>(__atomic_load_n(&header_->end_how, __ATOMIC_ACQUIRE));
    // exec may fail and abort may be caught: what comes after them is the truth.
    if (known != EndHow::none && known != EndHow::exec && known != EndHow::abort) {
        return;
    }
    header_->end_status = status;
    header_->end_realtime_ns = realtime_ns();
    __atomic_store_n(&header_->end_how, static_cast<std::uint32_t>(how), __ATOMIC_RELEASE);
}

}  // namespace cudiag
