#include "shim/opens.h"

#include <stdint.h>
#include <string.h>

namespace cudiag {
namespace {

// Paths one after the other, as Field::opens has them; the newest bytes survive. A compiler that
// fails of a missing header has tried it in every directory just before: some hundred paths. Pages
// that nobody writes to are never touched.
constexpr size_t kBytes = size_t{128} << 10;
char trail[kBytes];
uint64_t next = 0;  // bytes ever noted

void put(uint64_t at, const char* bytes, size_t size) {
    const auto begin = static_cast<size_t>(at % kBytes);
    const size_t first = size < kBytes - begin ? size : kBytes - begin;
    memcpy(trail + begin, bytes, first);
    memcpy(trail, bytes + first, size - first);
}

bool watched = false;

}  // namespace

void watch_opens() {
    watched = true;
}

bool opens_are_watched() {
    return watched;
}

void note_open(const char* path, bool could_be_opened) {
    const size_t size = strlen(path) + 1;
    if (size > kBytes / 4) {
        return;
    }
    const uint64_t at = __atomic_fetch_add(&next, 1 + size, __ATOMIC_RELAXED);
    put(at, could_be_opened ? "+" : "-", 1);
    put(at + 1, path, size);
}

FieldValue opens_field() {
    static char copy[kBytes];
    const uint64_t end = next;
    const uint64_t kept = end < kBytes ? end : kBytes;
    const auto begin = static_cast<size_t>((end - kept) % kBytes);
    const uint64_t first = kept < kBytes - begin ? kept : kBytes - begin;
    memcpy(copy, trail + begin, first);
    memcpy(copy + first, trail, kept - first);
    size_t cut = 0;
    if (end > kBytes) {  // the oldest was overwritten in part: from the next one on
        const void* nul = memchr(copy, '\0', kept);
        cut = nul == nullptr ? kept : static_cast<size_t>(static_cast<const char*>(nul) - copy) + 1;
    }
    return FieldValue::of(Field::opens, copy + cut, kept - cut);
}

}  // namespace cudiag
