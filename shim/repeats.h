// Counts what is alike, so that few of each are noted: after an error that sticks, every call
// fails.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace cudiag {

// 8 bits of the function, 10 of the error (the largest of CUDA is 999), 46 of the address of the
// call; never 0, since an error is not.
inline uint64_t key_of_call(size_t function, int error, uintptr_t caller) {
    constexpr unsigned kErrorBits = 10;
    constexpr unsigned kCallerBits = 46;
    const uint64_t number =
        (static_cast<uint64_t>(function) << kErrorBits) |
        (static_cast<uint64_t>(static_cast<unsigned>(error)) % (1U << kErrorBits));
    return (number << kCallerBits) | (caller & ((uint64_t{1} << kCallerBits) - 1));
}

// At most `most` in all, and `most_alike` of one key (which is not 0). Any thread; no lock.
template <uint32_t most, uint32_t most_alike>
class Repeats {
  public:
    bool is_new(uint64_t key) {
        if (__atomic_load_n(&noted_, __ATOMIC_RELAXED) >= most) {
            return false;
        }
        for (Alike& alike : seen_) {
            uint64_t found = 0;
            if (!__atomic_compare_exchange_n(&alike.key, &found, key, false, __ATOMIC_RELAXED,
                                             __ATOMIC_RELAXED) &&
                found != key) {
                continue;
            }
            return __atomic_load_n(&alike.count, __ATOMIC_RELAXED) < most_alike &&
                   __atomic_fetch_add(&alike.count, 1, __ATOMIC_RELAXED) < most_alike &&
                   __atomic_fetch_add(&noted_, 1, __ATOMIC_RELAXED) < most;
        }
        return false;
    }

    void forget() {
        for (Alike& alike : seen_) {
            alike = {};
        }
        noted_ = 0;
    }

  private:
    struct Alike {
        uint64_t key;  // 0: free
        uint32_t count;
    };

    Alike seen_[most] = {};
    uint32_t noted_ = 0;
};

}  // namespace cudiag
