#include "shim/cuda/driver_log.h"

#include <stddef.h>
#include <stdint.h>

#include "record/keep_errno.h"
#include "shim/cuda/asked_driver.h"
#include "shim/forks.h"
#include "shim/session.h"

namespace cudiag {
namespace {

constexpr uint32_t kMostLines = 256;  // after an error that sticks every call says so
constexpr size_t kLongest = 1024;

bool listening = false;
uint32_t lines = 0;
thread_local uint8_t asking = 0;  // how many Asking live

// Called by the driver, inside the call that failed, on its thread.
void hear(void* /*data*/, int level, char* message, size_t length) {
    const KeepErrno keep;
    if (message == nullptr || asking != 0 || session_state() != SessionState::open ||
        in_vfork_child() || __atomic_fetch_add(&lines, 1, __ATOMIC_RELAXED) >= kMostLines) {
        return;
    }
    size_t size = 0;
    while (size < length && size < kLongest && message[size] != '\0') {
        ++size;
    }
    const FieldValue fields[] = {
        FieldValue::of(Field::text, message, size),
        FieldValue::of(Field::level, static_cast<uint64_t>(static_cast<unsigned>(level)))};
    (void)note(EntryKind::cuda_log, fields, 2);
}

}  // namespace

Asking::Asking() {
    ++asking;
}

Asking::~Asking() {
    --asking;
}

void listen_to_driver() {
    auto* const listen = asked_driver().cuLogsRegisterCallback;
    void* handle = nullptr;
    if (listen != nullptr && !__atomic_exchange_n(&listening, true, __ATOMIC_ACQ_REL)) {
        (void)listen(hear, nullptr, &handle);
    }
}

}  // namespace cudiag
