// When the GPU was busy: the union of its operations' times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace cudiag {

class BusyTimes {
  public:
    // Intervals in any order; those that end before they begin count as nothing.
    explicit BusyTimes(std::vector<std::pair<std::uint64_t, std::uint64_t>> intervals) {
        std::sort(intervals.begin(), intervals.end());
        for (const auto& [begin, end] : intervals) {
            if (end <= begin) {
                continue;
            }
            if (!merged_.empty() && begin <= merged_.back().second) {
                merged_.back().second = std::max(merged_.back().second, end);
            } else {
                merged_.emplace_back(begin, end);
            }
        }
        sums_.push_back(0);
        for (const auto& [begin, end] : merged_) {
            sums_.push_back(sums_.back() + (end - begin));
        }
    }

    std::uint64_t total() const { return sums_.back(); }

    // Busy time from `begin` to `end`.
    std::uint64_t between(std::uint64_t begin, std::uint64_t end) const {
        return end <= begin ? 0 : until(end) - until(begin);
    }

  private:
    std::uint64_t until(std::uint64_t time) const {
        const auto after = std::upper_bound(
            merged_.begin(), merged_.end(), time,
            [](std::uint64_t value, const auto& interval) { return value < interval.first; });
        const auto count = static_cast<std::size_t>(after - merged_.begin());
        if (count == 0) {
            return 0;
        }
        const auto& [begin, end] = merged_[count - 1];
        return sums_[count - 1] + (std::min(end, time) - begin);
    }

    std::vector<std::pair<std::uint64_t, std::uint64_t>> merged_;
    std::vector<std::uint64_t> sums_;
};

}  // namespace cudiag
