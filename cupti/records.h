// CUPTI's records as far as they are read, so that no CUDA header is needed to build: these fields
// have had one layout from CUPTI 11.8 to 13.0 (CUpti_ActivityKernel4 to 10, CUpti_ActivityMemcpy to
// 6, CUpti_ActivityMemset to 4 in cupti_activity.h). Held against the headers of 11.8, 12.8 and
// 13.0 by tests/shim/cupti_records_are_as_its_headers_say.py. Each record may be longer than this.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace cudiag {

// CUpti_ActivityKind
inline constexpr int kKindCopy = 1;
inline constexpr int kKindFill = 2;
inline constexpr int kKindKernel = 3;
inline constexpr int kKindConcurrentKernel = 10;

// CUptiResult
inline constexpr int kCuptiNotInitialized = 15;

// The 11.8 whose layout is known; the release from which cuptiFinalize leaves graphs alone (12.6:
// pytorch/pytorch#146604).
inline constexpr uint32_t kOldestCupti = 17;
inline constexpr uint32_t kDetachesWell = 24;

struct CuptiKernel {
    uint32_t kind;
    uint8_t cache_config, shared_memory_config;
    uint16_t registers;
    uint32_t cache_requested, cache_executed;
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint32_t local_per_thread, local_total;
    uint32_t correlation;
    int64_t grid_id;
    const char* name;
};

struct CuptiCopy {
    uint32_t kind;
    uint8_t copy_kind, source_kind, destination_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
};

struct CuptiFill {
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
};

static_assert(offsetof(CuptiKernel, registers) == 6 && offsetof(CuptiKernel, start) == 16 &&
              offsetof(CuptiKernel, device) == 40 && offsetof(CuptiKernel, grid) == 52 &&
              offsetof(CuptiKernel, static_shared) == 76 &&
              offsetof(CuptiKernel, correlation) == 92 && offsetof(CuptiKernel, name) == 104 &&
              sizeof(CuptiKernel) == 112);
static_assert(offsetof(CuptiCopy, bytes) == 8 && offsetof(CuptiCopy, correlation) == 44 &&
              sizeof(CuptiCopy) == 48);
static_assert(offsetof(CuptiFill, bytes) == 8 && offsetof(CuptiFill, correlation) == 44 &&
              sizeof(CuptiFill) == 48);

}  // namespace cudiag
