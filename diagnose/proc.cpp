#include "diagnose/proc.h"

#include <fstream>
#include <sstream>
#include <string>

namespace cudiag {

std::optional<std::uint64_t> start_ticks_of(std::int32_t pid) {
    std::ifstream file{"/proc/" + std::to_string(pid) + "/stat"};
    std::string line;
    if (!std::getline(file, line)) {
        return std::nullopt;
    }
    // The command name may hold spaces and parentheses: fields are counted from the last ')'.
    const auto close = line.rfind(')');
    if (close == std::string::npos) {
        return std::nullopt;
    }
    std::istringstream rest{line.substr(close + 1)};
    std::string field;
    std::string state;
    for (int number = 3; number <= 22 && rest >> field; ++number) {
        if (number == 3) {
            state = field;
        }
    }
    if (!rest || state == "Z" || state == "X") {
        return std::nullopt;
    }
    return std::stoull(field);
}

}  // namespace cudiag
