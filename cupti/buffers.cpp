#include "cupti/buffers.h"

#include <string.h>
#include <sys/mman.h>

#include "cupti/real.h"
#include "cupti/records.h"

namespace cudiag {
namespace {

// 1 MiB holds some 5000 kernels. CUPTI asks for the next buffer while the last one is on its way
// back; 64 are in use only if nobody reads for long.
constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kBuffers = 64;
constexpr size_t kReady = 4;  // have their pages from the beginning

uint8_t* pool = nullptr;
uint64_t used = 0;  // a bit for each

uint64_t kept = 0;
uint64_t not_kept = 0;

// Names of kernels: CUPTI's strings live as long as their module. 64 bits of hash stand for a name.
struct Name {
    uint64_t hash;    // 0: free
    uint32_t number;  // index + 1; 0: being noted
};

constexpr size_t kNames = 8192;
Name names[kNames];
uint32_t names_noted = 0;

constexpr uint32_t kNoName = UINT32_MAX;

uint64_t hash_of(const char* text) {
    uint64_t hash = 14695981039346656037U;  // FNV-1a
    for (; *text != '\0'; ++text) {
        hash = (hash ^ static_cast<unsigned char>(*text)) * 1099511628211U;
    }
    return hash == 0 ? 1 : hash;
}

uint32_t number_of(const CuptiHost& host, const char* text) {
    if (text == nullptr) {
        return kNoName;
    }
    const uint64_t hash = hash_of(text);
    constexpr size_t kMostTries = 256;
    for (size_t i = 0; i < kMostTries; ++i) {
        Name& name = names[(hash + i) % kNames];
        uint64_t found = __atomic_load_n(&name.hash, __ATOMIC_ACQUIRE);
        if (found == 0 && __atomic_compare_exchange_n(&name.hash, &found, hash, false,
                                                      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            const uint32_t index = __atomic_fetch_add(&names_noted, 1, __ATOMIC_ACQ_REL);
            const FieldValue fields[] = {FieldValue::of(Field::index, uint64_t{index}),
                                         FieldValue::of(Field::name, text)};
            (void)host.note(EntryKind::profile_name, fields, 2);
            __atomic_store_n(&name.number, index + 1, __ATOMIC_RELEASE);
            return index;
        }
        if (found == hash) {
            uint32_t number = 0;
            for (int turn = 0; number == 0 && turn < 1000000; ++turn) {
                number = __atomic_load_n(&name.number, __ATOMIC_ACQUIRE);
            }
            return number == 0 ? kNoName : number - 1;
        }
    }
    return kNoName;
}

uint32_t product(const int32_t (&sizes)[3]) {
    uint64_t all = 1;
    for (const int32_t size : sizes) {
        all *= size > 0 ? static_cast<uint32_t>(size) : 0;
        all = all > UINT32_MAX ? UINT32_MAX : all;
    }
    return static_cast<uint32_t>(all);
}

template <class T>
T read(const void* record) {
    T value;
    memcpy(&value, record, sizeof value);
    return value;
}

bool read_record(const CuptiHost& host, const void* at, DeviceRecord& record) {
    record = {};
    switch (static_cast<int>(read<uint32_t>(at))) {
        case kKindKernel:
        case kKindConcurrentKernel: {
            const auto kernel = read<CuptiKernel>(at);
            record.begin = kernel.start;
            record.end = kernel.end;
            record.name = number_of(host, kernel.name);
            record.correlation = kernel.correlation;
            record.stream = kernel.stream;
            record.device = kernel.device;
            record.blocks = product(kernel.grid);
            record.threads = product(kernel.block);
            record.registers = kernel.registers;
            record.kind = static_cast<uint16_t>(DeviceKind::kernel);
            record.shared_bytes = static_cast<uint32_t>(kernel.static_shared) +
                                  static_cast<uint32_t>(kernel.dynamic_shared);
            return true;
        }
        case kKindCopy: {
            const auto copy = read<CuptiCopy>(at);
            record.begin = copy.start;
            record.end = copy.end;
            record.bytes = copy.bytes;
            record.name = copy.copy_kind;
            record.correlation = copy.correlation;
            record.stream = copy.stream;
            record.device = copy.device;
            record.kind = static_cast<uint16_t>(DeviceKind::copy);
            return true;
        }
        case kKindFill: {
            const auto fill = read<CuptiFill>(at);
            record.begin = fill.start;
            record.end = fill.end;
            record.bytes = fill.bytes;
            record.correlation = fill.correlation;
            record.stream = fill.stream;
            record.device = fill.device;
            record.kind = static_cast<uint16_t>(DeviceKind::fill);
            return true;
        }
        default:
            return false;  // of another client
    }
}

void write_batch(const CuptiHost& host, const DeviceRecord* records, size_t count) {
    if (count == 0) {
        return;
    }
    const FieldValue field = FieldValue::of(Field::records, records, count * sizeof(DeviceRecord));
    const bool written = host.note(EntryKind::device_records, &field, 1);
    __atomic_fetch_add(written ? &kept : &not_kept, count, __ATOMIC_RELAXED);
}

}  // namespace

bool map_buffers() {
    if (pool != nullptr) {
        return true;
    }
    void* const map = mmap(nullptr, kBuffers * kBufferBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return false;
    }
    // Pages that come while kernels are launched would be time of the program's.
    for (size_t at = 0; at < kReady * kBufferBytes; at += 4096) {
        __atomic_store_n(static_cast<uint8_t*>(map) + at, 0, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&pool, static_cast<uint8_t*>(map), __ATOMIC_RELEASE);
    return true;
}

uint8_t* take_buffer(size_t* size) {
    uint8_t* const begin = __atomic_load_n(&pool, __ATOMIC_ACQUIRE);
    uint64_t now = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
    while (begin != nullptr && ~now != 0) {
        const auto free = static_cast<unsigned>(__builtin_ctzll(~now));
        if (__atomic_compare_exchange_n(&used, &now, now | uint64_t{1} << free, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            *size = kBufferBytes;
            return begin + free * kBufferBytes;
        }
    }
    *size = 0;
    return nullptr;
}

bool give_back_buffer(const uint8_t* buffer) {
    const uint8_t* const begin = __atomic_load_n(&pool, __ATOMIC_ACQUIRE);
    if (begin == nullptr || buffer < begin || buffer >= begin + kBuffers * kBufferBytes) {
        return false;
    }
    const size_t number = static_cast<size_t>(buffer - begin) / kBufferBytes;
    (void)__atomic_and_fetch(&used, ~(uint64_t{1} << number), __ATOMIC_ACQ_REL);
    return true;
}

void keep_records(const CuptiHost& host, uint8_t* buffer, size_t valid) {
    const Cupti& real = cupti();
    constexpr size_t kBatch = 64;
    DeviceRecord batch[kBatch];
    size_t count = 0;
    void* record = nullptr;
    while (buffer != nullptr && valid > 0 && real.cuptiActivityGetNextRecord != nullptr &&
           real.cuptiActivityGetNextRecord(buffer, valid, &record) == 0) {
        if (read_record(host, record, batch[count]) && ++count == kBatch) {
            write_batch(host, batch, count);
            count = 0;
        }
    }
    write_batch(host, batch, count);
}

KeptRecords kept_records() {
    return {__atomic_load_n(&kept, __ATOMIC_RELAXED), __atomic_load_n(&not_kept, __ATOMIC_RELAXED)};
}

}  // namespace cudiag
