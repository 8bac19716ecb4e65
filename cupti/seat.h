// Who uses CUPTI in this process. It has one pair of buffer callbacks, and the last client to set
// one takes the records away from all before it, without a word (measured with torch.profiler:
// docs/gpu-results.md). So the pair is always ours, and clients get what they would have got.
//
// What a client asks for is taken note of whether or not we record: it may come first.
#pragma once

#include <stdint.h>

#include "cupti/interface.h"
#include "cupti/real.h"

namespace cudiag {

// A client's calls, in place of libcupti's functions (mux.cpp); each gives a CUptiResult.
int client_registers(RequestBuffer request, CompleteBuffer complete);
int client_sets_clock(TimestampCallback clock);
int client_enables(int kind);
int client_disables(int kind);
int client_finalizes();
int client_asks_dropped(void* context, uint32_t stream, uint64_t* dropped);

// A client made this call from there, with this result: who it is, for the profile. The first few.
void note_client(const char* call, uintptr_t caller, int result);

}  // namespace cudiag
