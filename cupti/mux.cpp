// What stands in for libcupti's functions in a process that is profiled: the library is in the
// global scope before any other that binds to CUPTI, so that these are found first. Everything
// that is not here goes to libcupti itself.
#include "cupti/real.h"
#include "cupti/records.h"
#include "cupti/seat.h"

// NOLINTBEGIN(readability-identifier-naming): CUPTI's names
#define CUDIAG_EXPORT __attribute__((visibility("default")))
#define CUDIAG_CALLER reinterpret_cast<uintptr_t>(__builtin_return_address(0))

extern "C" {

CUDIAG_EXPORT int cuptiActivityRegisterCallbacks(cudiag::RequestBuffer request,
                                                 cudiag::CompleteBuffer complete) {
    const int result = cudiag::client_registers(request, complete);
    cudiag::note_client("cuptiActivityRegisterCallbacks", CUDIAG_CALLER, result);
    return result;
}

CUDIAG_EXPORT int cuptiActivityRegisterTimestampCallback(cudiag::TimestampCallback clock) {
    return cudiag::client_sets_clock(clock);
}

CUDIAG_EXPORT int cuptiActivityEnable(int kind) {
    return cudiag::client_enables(kind);
}

CUDIAG_EXPORT int cuptiActivityDisable(int kind) {
    return cudiag::client_disables(kind);
}

CUDIAG_EXPORT int cuptiFinalize() {
    return cudiag::client_finalizes();
}

CUDIAG_EXPORT int cuptiActivityGetNumDroppedRecords(void* context, uint32_t stream,
                                                    size_t* dropped) {
    constexpr int kInvalidParameter = 1;
    uint64_t count = 0;
    const int result = dropped == nullptr ? kInvalidParameter
                                          : cudiag::client_asks_dropped(context, stream, &count);
    if (result == 0) {
        *dropped = count;
    }
    return result;
}

// The seat of callbacks is not ours: who takes it is noted, since others are refused then.
CUDIAG_EXPORT int cuptiSubscribe(void* subscriber, void* callback, void* data) {
    auto* const real = cudiag::cupti().cuptiSubscribe;
    const int result =
        real == nullptr ? cudiag::kCuptiNotInitialized : real(subscriber, callback, data);
    cudiag::note_client("cuptiSubscribe", CUDIAG_CALLER, result);
    return result;
}

CUDIAG_EXPORT int cuptiSubscribe_v2(void* subscriber, void* callback, void* data,
                                    void* parameters) {
    auto* const real = cudiag::cupti().cuptiSubscribe_v2;
    const int result = real == nullptr ? cudiag::kCuptiNotInitialized
                                       : real(subscriber, callback, data, parameters);
    cudiag::note_client("cuptiSubscribe_v2", CUDIAG_CALLER, result);
    return result;
}
}
// NOLINTEND(readability-identifier-naming)
