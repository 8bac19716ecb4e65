// The buffers that CUPTI fills. Ours come from a pool that is mapped before anything is recorded;
// while another client records too, CUPTI gets that client's own buffers, and what is in them is
// read on the way back (mux.cpp).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cupti/interface.h"

namespace cudiag {

// Maps the pool, once. False if that cannot be.
bool map_buffers();

// A buffer of the pool; nullptr if all are in use: CUPTI drops what it has no buffer for, and
// counts it.
uint8_t* take_buffer(size_t* size);

// Gives one back; false if it is none of the pool's.
bool give_back_buffer(const uint8_t* buffer);

// Writes the records in a buffer into the profile. Any thread, several at once.
void keep_records(const CuptiHost& host, uint8_t* buffer, size_t valid);

struct KeptRecords {
    uint64_t kept, not_kept;  // records in the profile, and those for which it had no room
};

KeptRecords kept_records();

}  // namespace cudiag
