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

namespace {

// Pieces ended by NUL of a file below /proc.
std::vector<std::string> pieces_of(std::int32_t pid, const char* file_name) {
    std::ifstream file{"/proc/" + std::to_string(pid) + "/" + file_name};
    std::vector<std::string> pieces;
    for (std::string piece; std::getline(file, piece, '\0');) {
        pieces.push_back(std::move(piece));
    }
    return pieces;
}

}  // namespace

std::vector<std::string> command_line_of(std::int32_t pid) {
    return pieces_of(pid, "cmdline");
}

std::map<std::string, std::string> environment_of(std::int32_t pid) {
    std::map<std::string, std::string> environment;
    for (const std::string& variable : pieces_of(pid, "environ")) {
        if (const auto equals = variable.find('='); equals != std::string::npos) {
            environment[variable.substr(0, equals)] = variable.substr(equals + 1);
        }
    }
    return environment;
}

}  // namespace cudiag
