#include "shim/cuda/progress.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/keep_errno.h"
#include "shim/cuda/asked_driver.h"
#include "shim/cuda/driver_log.h"
#include "shim/cuda/failed_calls.h"
#include "shim/run_directory.h"
#include "shim/session.h"
#include "shim/text.h"

namespace cudiag {
namespace {

constexpr size_t kPage = kProgressBytes;
constexpr size_t kStreams = 4096;
constexpr uint64_t kGone = ~uint64_t{0};

// In the recording. Where the driver refuses that (pages of most file systems cannot be pinned for
// long), in a file of shared memory, which is there after a SIGKILL as well; else in a page of no
// file.
ProgressSlot* slots = nullptr;
bool in_recording = false;
char shared_file[256];  // "" if it is none; in kSharedMemory
unsigned long long device_address = 0;
constexpr uint8_t kUnbegun = 0, kBeginning = 1, kBegun = 2, kRefused = 3;
uint8_t begun = kUnbegun;
uint64_t streams[kStreams];

constexpr const char* kSharedMemory = "/dev/shm";

void tell(const char* why) {
    const FieldValue fields[] = {FieldValue::of(Field::name, "CUDIAG_TRACK"),
                                 FieldValue::of(Field::text, why),
                                 FieldValue::of(Field::path, shared_file)};
    (void)note(EntryKind::cuda_tracking, fields, shared_file[0] != '\0' ? 3 : 2);
}

ProgressSlot* map_page(int flags, int file) {
    void* const page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, flags, file, 0);
    return page == MAP_FAILED ? nullptr : static_cast<ProgressSlot*>(page);
}

// "/dev/shm/cudiag-1000/5f0c22d1-1234567-4711-4712.marks": of this process of this run.
ProgressSlot* map_shared_file() {
    char directory[32];
    Text{directory, sizeof directory}.add("cudiag-").add(static_cast<uint64_t>(geteuid()));
    const int at = make_own_directory(kSharedMemory, directory);
    if (at < 0) {
        return nullptr;
    }
    const char* run = strrchr(run_directory(), '/');
    Text path{shared_file, sizeof shared_file};
    path.add(kSharedMemory).add("/").add(directory);
    const size_t name = path.length() + 1;
    path.add(run != nullptr ? run : "/").add("-").add(static_cast<uint64_t>(getpid()));
    path.add(".marks");
    const int file =
        openat(at, shared_file + name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    (void)close(at);
    ProgressSlot* page = nullptr;
    if (file >= 0 && posix_fallocate(file, 0, kPage) == 0) {
        page = map_page(MAP_SHARED, file);
    }
    if (file >= 0) {
        (void)close(file);
    }
    if (page == nullptr) {
        if (file >= 0) {
            (void)unlink(shared_file);
        }
        shared_file[0] = '\0';
    }
    return page;
}

void remove_shared_file() {
    if (shared_file[0] != '\0') {
        (void)unlink(shared_file);
        shared_file[0] = '\0';
    }
}

bool give_to_driver(void* page) {
    const AskedDriver& driver = asked_driver();
    constexpr unsigned kPortableAndMapped = 3;  // CU_MEMHOSTREGISTER_PORTABLE | _DEVICEMAP
    return driver.cuMemHostRegister_v2(page, kPage, kPortableAndMapped) == 0 &&
           driver.cuMemHostGetDevicePointer_v2(&device_address, page, 0) == 0;
}

// The first that the driver takes of what lasts longest.
bool take_memory() {
    slots = progress_slots();
    in_recording = slots != nullptr && give_to_driver(slots);
    if (in_recording) {
        return true;
    }
    slots = map_shared_file();
    if (slots != nullptr && give_to_driver(slots)) {
        return true;
    }
    remove_shared_file();
    slots = map_page(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    return slots != nullptr && give_to_driver(slots);
}

size_t first_place(uint64_t stream) {
    constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;
    static_assert(kStreams == size_t{1} << (64 - 52));
    return (stream * kSpread) >> 52;
}

bool was_made(uint64_t stream) {
    if (stream == kLegacyStream || stream == kPerThreadStream) {
        return true;
    }
    size_t at = first_place(stream);
    for (size_t i = 0; i < kStreams; ++i, at = (at + 1) % kStreams) {
        const uint64_t found = __atomic_load_n(&streams[at], __ATOMIC_ACQUIRE);
        if (found == stream || found == 0) {
            return found == stream;
        }
    }
    return false;
}

// Contexts differ for the default streams, whose number is the same in all.
ProgressSlot* slot_for(uint64_t context, uint64_t stream) {
    for (size_t i = 0; i < kProgressSlots; ++i) {
        ProgressSlot& slot = slots[i];
        uint64_t found = __atomic_load_n(&slot.stream, __ATOMIC_ACQUIRE);
        if (found == 0) {
            // The context is stored behind: another thread that launches into the same stream for
            // the first time now may take a second slot, and no mark is lost by that.
            if (__atomic_compare_exchange_n(&slot.stream, &found, stream, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE)) {
                __atomic_store_n(&slot.context, context, __ATOMIC_RELEASE);
                return &slot;
            }
        }
        if (found == stream && __atomic_load_n(&slot.context, __ATOMIC_ACQUIRE) == context) {
            return &slot;
        }
    }
    return nullptr;
}

uint64_t current_context() {
    void* context = nullptr;
    const AskedDriver& driver = asked_driver();
    return driver.cuCtxGetCurrent != nullptr && driver.cuCtxGetCurrent(&context) == 0
               ? reinterpret_cast<uint64_t>(context)
               : 0;
}

ProgressSlot* slot_of(const Launch& launch) {
    const uint64_t context = current_context();
    const uint64_t thread =
        launch.stream == kPerThreadStream ? static_cast<uint64_t>(syscall(SYS_gettid)) << 32 : 0;
    return context == 0 ? nullptr : slot_for(context, launch.stream | thread);
}

// False: there will be no marks.
bool begin_progress() {
    const Asking asking;
    const AskedDriver& driver = asked_driver();
    if (driver.cuMemHostRegister_v2 == nullptr || driver.cuMemHostGetDevicePointer_v2 == nullptr ||
        driver.cuStreamWriteValue32_v2 == nullptr || driver.cuCtxGetCurrent == nullptr) {
        tell("this driver has no cuStreamWriteValue32_v2 (CUDA 11.7)");
        return false;
    }
    if (!take_memory()) {
        tell("the driver cannot map memory of the host");
        return false;
    }
    tell("");
    return true;
}

// Memory is registered in a context: there is none before the first launch. Launches of other
// threads meanwhile have no marks; that they are done is known from those behind them.
bool has_begun() {
    uint8_t now = __atomic_load_n(&begun, __ATOMIC_ACQUIRE);
    if (__builtin_expect(now == kUnbegun, 0) && current_context() != 0 &&
        __atomic_compare_exchange_n(&begun, &now, kBeginning, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        now = begin_progress() ? kBegun : kRefused;
        __atomic_store_n(&begun, now, __ATOMIC_RELEASE);
    }
    return now == kBegun;
}

}  // namespace

void mark_launch(Launch& launch) {
    ProgressSlot* const slot = has_begun() && was_made(launch.stream) ? slot_of(launch) : nullptr;
    launch.mark = slot == nullptr ? 0 : __atomic_add_fetch(&slot->launched, 1, __ATOMIC_ACQ_REL);
}

bool finish_mark(const Launch& launch) {
    const AskedDriver& driver = asked_driver();
    auto* const write =
        launch.per_thread ? driver.cuStreamWriteValue32_v2_ptsz : driver.cuStreamWriteValue32_v2;
    const ProgressSlot* const slot = slot_of(launch);
    if (slot == nullptr || write == nullptr) {
        return true;
    }
    const auto offset =
        reinterpret_cast<const char*>(&slot->finished) - reinterpret_cast<const char*>(slots);
    const Asking asking;
    const int result =
        write(handle_of(launch.handle), device_address + static_cast<unsigned long long>(offset),
              launch.mark, 0);
    if (result != 0) {
        keep_progress();
    }
    // After an error that sticks every call gives it, and the program's next one tells it.
    if (result != 0 && !is_sticky(result)) {
        tell("the driver refused a mark");
    }
    return result == 0;
}

void keep_progress() {
    ProgressSlot* const kept = progress_slots();
    if (slots == nullptr || in_recording || kept == nullptr) {
        return;
    }
    for (size_t i = 0; i < kProgressSlots; ++i) {
        kept[i].context = __atomic_load_n(&slots[i].context, __ATOMIC_ACQUIRE);
        kept[i].stream = __atomic_load_n(&slots[i].stream, __ATOMIC_ACQUIRE);
        kept[i].launched = __atomic_load_n(&slots[i].launched, __ATOMIC_ACQUIRE);
        kept[i].finished = __atomic_load_n(&slots[i].finished, __ATOMIC_ACQUIRE);
    }
}

void end_progress() {
    keep_progress();
    remove_shared_file();
}

void note_stream(uint64_t stream, bool made) {
    size_t at = first_place(stream);
    for (size_t i = 0; i < kStreams; ++i, at = (at + 1) % kStreams) {
        uint64_t found = __atomic_load_n(&streams[at], __ATOMIC_ACQUIRE);
        if (!made && (found == 0 || found == stream)) {
            if (found == stream) {
                __atomic_store_n(&streams[at], kGone, __ATOMIC_RELEASE);
            }
            return;
        }
        if (made && (found == stream ||
                     ((found == 0 || found == kGone) &&
                      __atomic_compare_exchange_n(&streams[at], &found, stream, false,
                                                  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)))) {
            return;
        }
    }
}

void forget_progress() {
    begun = kUnbegun;
    slots = nullptr;
    in_recording = false;
    device_address = 0;
    shared_file[0] = '\0';  // a parent's, in a fork child
}

}  // namespace cudiag
