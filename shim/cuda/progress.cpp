#include "shim/cuda/progress.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/keep_errno.h"
#include "shim/cuda/asked_driver.h"
#include "shim/cuda/driver_log.h"
#include "shim/cuda/failed_calls.h"
#include "shim/session.h"

namespace cudiag {
namespace {

constexpr size_t kPage = kProgressBytes;
constexpr size_t kStreams = 4096;
constexpr uint64_t kGone = ~uint64_t{0};

// In the recording, or, where the driver refuses memory of a file, one page of no file.
ProgressSlot* slots = nullptr;
bool in_recording = false;
unsigned long long device_address = 0;
uint64_t streams[kStreams];

void tell(const char* why) {
    const FieldValue fields[] = {FieldValue::of(Field::name, "CUDIAG_TRACK"),
                                 FieldValue::of(Field::text, why)};
    (void)note(EntryKind::cuda_tracking, fields, 2);
}

bool give_to_driver(void* page) {
    const AskedDriver& driver = asked_driver();
    constexpr unsigned kPortableAndMapped = 3;  // CU_MEMHOSTREGISTER_PORTABLE | _DEVICEMAP
    return driver.cuMemHostRegister_v2(page, kPage, kPortableAndMapped) == 0 &&
           driver.cuMemHostGetDevicePointer_v2(&device_address, page, 0) == 0;
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

}  // namespace

bool begin_progress() {
    const Asking asking;
    const AskedDriver& driver = asked_driver();
    if (driver.cuMemHostRegister_v2 == nullptr || driver.cuMemHostGetDevicePointer_v2 == nullptr ||
        driver.cuStreamWriteValue32_v2 == nullptr || driver.cuCtxGetCurrent == nullptr) {
        tell("this driver has no cuStreamWriteValue32_v2 (CUDA 11.7)");
        return false;
    }
    if (current_context() == 0) {
        tell("no context was current at the first launch");
        return false;
    }
    slots = progress_slots();
    in_recording = slots != nullptr && give_to_driver(slots);
    if (!in_recording) {
        void* const page =
            mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        slots = page == MAP_FAILED ? nullptr : static_cast<ProgressSlot*>(page);
        if (slots == nullptr || !give_to_driver(slots)) {
            tell("the driver cannot map memory of the host");
            return false;
        }
    }
    tell("");
    return true;
}

void mark_launch(Launch& launch) {
    ProgressSlot* const slot = was_made(launch.stream) ? slot_of(launch) : nullptr;
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
    slots = nullptr;
    in_recording = false;
    device_address = 0;
}

}  // namespace cudiag
