#include "diagnose/loader/symbol_owner.h"

#include <nlohmann/json.hpp>
#include <regex>
#include <utility>

#include "diagnose/embedded.h"

namespace cudiag {

const SymbolOwner* symbol_owner(const std::string& demangled) {
    static const auto owners_by_pattern = [] {
        std::vector<std::pair<std::regex, SymbolOwner>> owners;
        for (const auto& entry :
             nlohmann::json::parse(embedded_file("symbol_owners.json"), nullptr, true, true)) {
            owners.emplace_back(std::regex{entry.at("pattern").get<std::string>()},
                                SymbolOwner{entry.at("family").get<std::string>(),
                                            entry.at("libraries").get<std::vector<std::string>>()});
        }
        return owners;
    }();
    constexpr std::size_t kLongest = 8192;  // std::regex recurses per character
    const std::string name = demangled.substr(0, kLongest);
    for (const auto& [pattern, owner] : owners_by_pattern) {
        if (std::regex_search(name, pattern)) {
            return &owner;
        }
    }
    return nullptr;
}

}  // namespace cudiag
