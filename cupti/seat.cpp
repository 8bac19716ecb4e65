#include "cupti/seat.h"

#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cupti/buffers.h"
#include "cupti/records.h"
#include "record/keep_errno.h"
#include "shim/loaded_object.h"
#include "shim/text.h"

namespace cudiag {
namespace {

constexpr int kOurKinds[] = {kKindConcurrentKernel, kKindCopy, kKindFill};
constexpr size_t kKinds = 128;  // of which CUPTI 13 has 60

// A set of CUpti_ActivityKinds.
class Kinds {
  public:
    bool has(int kind) const { return is_kind(kind) && (load(kind) & bit(kind)) != 0; }

    bool none() const {
        return __atomic_load_n(&words_[0], __ATOMIC_ACQUIRE) == 0 &&
               __atomic_load_n(&words_[1], __ATOMIC_ACQUIRE) == 0;
    }

    void set(int kind, bool value) {
        if (is_kind(kind) && value) {
            (void)__atomic_or_fetch(&words_[kind / 64], bit(kind), __ATOMIC_ACQ_REL);
        } else if (is_kind(kind)) {
            (void)__atomic_and_fetch(&words_[kind / 64], ~bit(kind), __ATOMIC_ACQ_REL);
        }
    }

    void clear() {
        for (uint64_t& word : words_) {
            __atomic_store_n(&word, uint64_t{0}, __ATOMIC_RELEASE);
        }
    }

  private:
    static bool is_kind(int kind) { return kind >= 0 && kind < static_cast<int>(kKinds); }

    static uint64_t bit(int kind) { return uint64_t{1} << (kind % 64); }

    uint64_t load(int kind) const { return __atomic_load_n(&words_[kind / 64], __ATOMIC_ACQUIRE); }

    uint64_t words_[kKinds / 64] = {};
};

// One caller at a time changes who records what. CUPTI's callbacks take no lock.
bool locked = false;

class Lock {
  public:
    Lock() {
        const struct timespec pause = {0, 50'000};
        // 2 s: a thread that was stopped inside must not stop the program.
        for (int turn = 0; turn < 40000; ++turn) {
            if (!__atomic_exchange_n(&locked, true, __ATOMIC_ACQUIRE)) {
                return;
            }
            (void)syscall(SYS_nanosleep, &pause, nullptr);
        }
    }

    ~Lock() { __atomic_store_n(&locked, false, __ATOMIC_RELEASE); }

    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
};

CuptiHost host_copy{};
const CuptiHost* host = nullptr;
bool recording = false;
bool registered = false;
Kinds ours;    // enabled for us
Kinds theirs;  // enabled by a client
bool had_client = false;
bool shared = false;  // a client recorded while we did
RequestBuffer client_request = nullptr;
CompleteBuffer client_complete = nullptr;
uint64_t spent = 0;

// The count is reset by reading it, and there are two who want it.
uint64_t dropped = 0;
uint64_t dropped_of_client = 0;
bool dropped_known = true;

constexpr size_t kClients = 8;

struct Client {
    const char* call;
    uintptr_t caller;
    int result;
};

Client clients[kClients];
size_t client_count = 0;

template <class T>
T load(const T& from) {
    return __atomic_load_n(&from, __ATOMIC_ACQUIRE);
}

uint64_t monotonic_ns() {
    struct timespec now {};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000U + static_cast<uint64_t>(now.tv_nsec);
}

void request_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
    const KeepErrno keep;
    const uint64_t began = monotonic_ns();
    const RequestBuffer client = load(client_request);
    *most_records = 0;
    if (!theirs.none() && client != nullptr) {
        client(buffer, size, most_records);
    } else {
        *buffer = take_buffer(size);
        (void)__atomic_add_fetch(&spent, monotonic_ns() - began, __ATOMIC_RELAXED);
    }
}

void complete_buffer(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid) {
    const KeepErrno keep;
    if (load(recording) && load(host) != nullptr) {
        const uint64_t began = monotonic_ns();
        keep_records(*host, buffer, valid);
        (void)__atomic_add_fetch(&spent, monotonic_ns() - began, __ATOMIC_RELAXED);
    }
    const CompleteBuffer client = load(client_complete);
    if (!give_back_buffer(buffer) && client != nullptr) {
        client(context, stream, buffer, size, valid);
    }
}

int register_ours() {
    const Cupti& real = cupti();
    if (registered) {
        return 0;
    }
    const int result = real.cuptiActivityRegisterCallbacks == nullptr
                           ? kCuptiNotInitialized
                           : real.cuptiActivityRegisterCallbacks(request_buffer, complete_buffer);
    registered = result == 0;
    return result;
}

void flush() {
    constexpr uint32_t kForced = 1;  // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED
    if (cupti().cuptiActivityFlushAll != nullptr) {
        (void)cupti().cuptiActivityFlushAll(kForced);
    }
}

int read_dropped(void* context, uint32_t stream) {
    size_t count = 0;
    const int result = cupti().cuptiActivityGetNumDroppedRecords == nullptr
                           ? kCuptiNotInitialized
                           : cupti().cuptiActivityGetNumDroppedRecords(context, stream, &count);
    if (result == 0) {
        dropped += count;
        dropped_of_client += count;
    } else {
        dropped_known = false;
    }
    return result;
}

const char* words_of(int error) {
    const char* words = nullptr;
    return cupti().cuptiGetResultString != nullptr &&
                   cupti().cuptiGetResultString(error, &words) == 0 && words != nullptr
               ? words
               : "";
}

bool lack(const char* why) {
    const FieldValue field = FieldValue::of(Field::text, why);
    (void)host->note(EntryKind::profile_lacks, &field, 1);
    return false;
}

bool refused(const char* call, int error) {
    const FieldValue fields[] = {
        FieldValue::of(Field::text, words_of(error)), FieldValue::of(Field::name, call),
        FieldValue::of(Field::error, static_cast<uint64_t>(static_cast<unsigned>(error))),
        FieldValue::of(Field::path, cupti().path)};
    (void)host->note(EntryKind::profile_lacks, fields, 4);
    return false;
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
    Text{holder.path, holder.size}.add(info->dlpi_name == nullptr ? "" : info->dlpi_name);
    return 1;
}

void write_client(const Client& client) {
    char path[1024];
    path[0] = '\0';
    Holder holder{client.caller, path, sizeof path, 0};
    (void)dl_iterate_phdr(find_holder, &holder);
    const FieldValue fields[] = {
        FieldValue::of(Field::name, client.call), FieldValue::of(Field::caller, path),
        FieldValue::of(Field::caller_offset, holder.offset),
        FieldValue::of(Field::error, static_cast<uint64_t>(static_cast<unsigned>(client.result)))};
    (void)host->note(EntryKind::profile_client, fields, 4);
}

// Kinds that a client has enabled already are not to be enabled again.
int enable_ours(int kind) {
    const int result = theirs.has(kind) ? 0 : cupti().cuptiActivityEnable(kind);
    ours.set(kind, result == 0);
    return result;
}

void disable_ours() {
    for (const int kind : kOurKinds) {
        if (ours.has(kind) && !theirs.has(kind) && cupti().cuptiActivityDisable != nullptr) {
            (void)cupti().cuptiActivityDisable(kind);
        }
    }
    ours.clear();
}

}  // namespace

int client_registers(RequestBuffer request, CompleteBuffer complete) {
    const Lock lock;
    if (request == nullptr || complete == nullptr ||
        cupti().cuptiActivityRegisterCallbacks == nullptr) {
        return cupti().cuptiActivityRegisterCallbacks == nullptr
                   ? kCuptiNotInitialized
                   : cupti().cuptiActivityRegisterCallbacks(request, complete);
    }
    const int result = register_ours();
    if (result == 0) {
        had_client = true;
        __atomic_store_n(&client_request, request, __ATOMIC_RELEASE);
        __atomic_store_n(&client_complete, complete, __ATOMIC_RELEASE);
    }
    return result;
}

int client_sets_clock(TimestampCallback clock) {
    const Lock lock;
    if (cupti().cuptiActivityRegisterTimestampCallback == nullptr) {
        return kCuptiNotInitialized;
    }
    // What CUPTI has not handed over by then it hands over without times (CUPTI 13.0).
    if (recording) {
        flush();
    }
    return cupti().cuptiActivityRegisterTimestampCallback(clock);
}

int client_enables(int kind) {
    const Lock lock;
    if (cupti().cuptiActivityEnable == nullptr) {
        return kCuptiNotInitialized;
    }
    if (!recording) {
        const int result = cupti().cuptiActivityEnable(kind);
        theirs.set(kind, theirs.has(kind) || result == 0);
        return result;
    }
    // From now on CUPTI is to fill the client's buffers; the one that it is filling is ours.
    const bool first = theirs.none();
    const bool before = theirs.has(kind);
    had_client = shared = true;
    theirs.set(kind, true);
    if (first) {
        flush();
    }
    const int result = ours.has(kind) ? 0 : cupti().cuptiActivityEnable(kind);
    if (result != 0 && !before) {
        theirs.set(kind, false);
    }
    return result;
}

int client_disables(int kind) {
    const Lock lock;
    if (cupti().cuptiActivityDisable == nullptr) {
        return kCuptiNotInitialized;
    }
    const int result = ours.has(kind) ? 0 : cupti().cuptiActivityDisable(kind);
    theirs.set(kind, theirs.has(kind) && result != 0);
    return result;
}

int client_finalizes() {
    const Lock lock;
    if (cupti().cuptiFinalize == nullptr) {
        return kCuptiNotInitialized;
    }
    if (recording) {
        for (int kind = 0; kind < static_cast<int>(kKinds); ++kind) {
            if (theirs.has(kind) && !ours.has(kind)) {
                (void)cupti().cuptiActivityDisable(kind);
            }
        }
        theirs.clear();
        return 0;
    }
    const int result = cupti().cuptiFinalize();
    registered = registered && result != 0;
    theirs.clear();
    return result;
}

int client_asks_dropped(void* context, uint32_t stream, uint64_t* count) {
    const Lock lock;
    const int result = read_dropped(context, stream);
    *count = dropped_of_client;
    if (result == 0) {
        dropped_of_client = 0;
    }
    return result;
}

void note_client(const char* call, uintptr_t caller, int result) {
    const KeepErrno keep;
    const Lock lock;
    for (size_t i = 0; i < client_count; ++i) {
        if (clients[i].call == call && clients[i].caller == caller && clients[i].result == result) {
            return;
        }
    }
    if (client_count < kClients) {
        clients[client_count++] = {call, caller, result};
        if (host != nullptr) {
            write_client(clients[client_count - 1]);
        }
    }
}

}  // namespace cudiag

using namespace cudiag;  // NOLINT(google-build-using-namespace): the functions are C's

extern "C" {

bool cudiag_cupti_begin(const CuptiHost* asks, uint64_t launches) {
    const KeepErrno keep;
    const Cupti& real = load_cupti(*asks);
    const Lock lock;
    if (recording) {
        return true;
    }
    host_copy = *asks;
    __atomic_store_n(&host, &host_copy, __ATOMIC_RELEASE);
    for (size_t i = 0; i < client_count; ++i) {
        write_client(clients[i]);
    }
    if (!real.found()) {
        return lack("no libcupti that fits the CUDA of this process was found");
    }
    uint32_t version = 0;
    if (real.cuptiGetVersion == nullptr || real.cuptiGetVersion(&version) != 0 ||
        version < kOldestCupti) {
        return lack("this libcupti is older than that of CUDA 11.8");
    }
    if (!map_buffers()) {
        return lack("no memory for CUPTI's buffers");
    }
    int result = register_ours();
    if (result != 0) {
        return refused("cuptiActivityRegisterCallbacks", result);
    }
    (void)read_dropped(nullptr, 0);
    dropped = 0;
    dropped_known = true;
    shared = !theirs.none();
    __atomic_store_n(&recording, true, __ATOMIC_RELEASE);
    for (const int kind : kOurKinds) {
        result = enable_ours(kind);
        if (result != 0) {
            disable_ours();
            __atomic_store_n(&recording, false, __ATOMIC_RELEASE);
            return refused("cuptiActivityEnable", result);
        }
    }
    const FieldValue fields[] = {FieldValue::of(Field::status, uint64_t{1}),
                                 FieldValue::of(Field::count, launches),
                                 FieldValue::of(Field::path, real.path),
                                 FieldValue::of(Field::cupti_version, uint64_t{version})};
    (void)host->note(EntryKind::profile_window, fields, 4);
    return true;
}

bool cudiag_cupti_end(uint64_t launches, bool last) {
    const KeepErrno keep;
    const Lock lock;
    if (!recording) {
        return true;
    }
    if (!theirs.none() && !last) {
        return false;
    }
    const Cupti& real = cupti();
    flush();
    (void)read_dropped(nullptr, 0);
    disable_ours();
    __atomic_store_n(&recording, false, __ATOMIC_RELEASE);
    const KeptRecords records = kept_records();
    FieldValue fields[] = {FieldValue::of(Field::status, uint64_t{0}),
                           FieldValue::of(Field::count, launches),
                           FieldValue::of(Field::kept, records.kept),
                           FieldValue::of(Field::not_kept, records.not_kept),
                           FieldValue::of(Field::spent, load(spent)),
                           FieldValue::of(Field::shared, uint64_t{shared ? 1U : 0U}),
                           FieldValue::of(Field::dropped, dropped)};
    constexpr size_t kWithoutDropped = sizeof fields / sizeof *fields - 1;
    (void)host->note(EntryKind::profile_window, fields, kWithoutDropped + (dropped_known ? 1 : 0));
    uint32_t version = 0;
    if (!last && !had_client && real.cuptiFinalize != nullptr &&
        real.cuptiGetVersion(&version) == 0 && version >= kDetachesWell &&
        real.cuptiFinalize() == 0) {
        registered = false;
    }
    return true;
}

void cudiag_cupti_forget() {
    recording = registered = had_client = shared = locked = false;
    host = nullptr;
    ours.clear();
    theirs.clear();
    client_count = 0;
}
}
