// Text into a buffer of fixed size: no allocation, no locale, async-signal-safe. What does not fit
// is cut, and known to be.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace cudiag {

class Text {
  public:
    Text(char* buffer, size_t size) : buffer_{buffer}, size_{size} { buffer_[0] = '\0'; }

    Text& add(const char* text) { return add(text, strlen(text)); }

    Text& add(const char* text, size_t length) {
        if (length >= size_ - used_) {
            length = size_ - used_ - 1;
            cut_ = true;
        }
        // used_ is below size_, which the analyzer cannot see.
        // NOLINTNEXTLINE(clang-analyzer-unix.cstring.UninitializedRead)
        memcpy(buffer_ + used_, text, length);
        used_ += length;
        buffer_[used_] = '\0';
        return *this;
    }

    Text& add(uint64_t number) {
        char digits[20];
        size_t at = sizeof digits;
        do {
            digits[--at] = static_cast<char>('0' + number % 10);
            number /= 10;
        } while (number != 0);
        return add(digits + at, sizeof digits - at);
    }

    size_t length() const { return used_; }

    bool cut() const { return cut_; }

  private:
    char* buffer_;
    size_t size_;
    size_t used_ = 0;
    bool cut_ = false;
};

}  // namespace cudiag
