#include "present/profile_text.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <cstring>
#include <utility>

namespace cudiag {

std::string nanoseconds_text(double nanoseconds) {
    constexpr std::array<std::pair<double, const char*>, 3> kUnits{
        {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}}};
    for (const auto& [size, name] : kUnits) {
        const double number = nanoseconds / size;
        if (number >= 0.9995) {  // what is rounded to 1.00
            const int decimals = number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
            return fmt::format("{:.{}f} {}", number, decimals, name);
        }
    }
    return fmt::format("{:.0f} ns", nanoseconds);
}

std::string short_kernel(const std::string& name) {
    constexpr std::size_t kLongest = 100;
    std::string text = name;
    for (const char* const nothing : {"(anonymous namespace)::", "at::native::", "void "}) {
        for (auto at = text.find(nothing); at != std::string::npos; at = text.find(nothing, at)) {
            text.erase(at, std::strlen(nothing));
        }
    }
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        depth += text[i] == '<' ? 1 : text[i] == '>' ? -1 : 0;
        if (text[i] == '(' && depth == 0) {
            text.resize(i);
        }
    }
    if (text.size() > kLongest) {
        text.resize(kLongest);
        text += "…";
    }
    return text;
}

std::optional<std::size_t> typical_step(const Profile& profile, std::size_t optimizer) {
    std::optional<std::size_t> nearest;
    double least = 0;
    for (std::size_t i = 0; i < profile.steps.size(); ++i) {
        const OptimizerStep& step = profile.steps[i];
        if (step.optimizer != optimizer || !step.profiled || step.operations == 0) {
            continue;
        }
        const double away = std::abs(static_cast<double>(step.device_end - step.device_begin) -
                                     profile.optimizers[optimizer].span.median);
        if (!nearest || away < least) {
            nearest = i;
            least = away;
        }
    }
    return nearest;
}

}  // namespace cudiag
