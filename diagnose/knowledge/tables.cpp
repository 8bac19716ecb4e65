#include "diagnose/knowledge/tables.h"

#include <regex>

#include "diagnose/knowledge/data_object.h"

namespace cudiag {
namespace {

// By torch's patch release, the oldest first: JSON's objects are sorted by name, and so far no
// patch has two digits.
std::vector<Pin> companions(DataObject& entry, const std::string& package) {
    std::vector<Pin> result;
    for (auto& [torch, version] : entry.pairs(package)) {
        result.push_back({torch, version});
    }
    return result;
}

}  // namespace

TorchTable parse_torch(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "torch.json", keep);
    TorchTable table;
    for (DataObject& entry : file.objects("releases")) {
        TorchRelease release;
        release.version = entry.text("version");
        release.cuda = entry.text("cuda");
        release.torchvisions = companions(entry, "torchvision");
        release.torchaudios = companions(entry, "torchaudio");
        release.torchvision =
            release.torchvisions.empty() ? "" : release.torchvisions.back().version;
        release.torchaudio = release.torchaudios.empty() ? "" : release.torchaudios.back().version;
        for (auto& [package, version] : entry.pairs("pins")) {
            release.pins.push_back({package, version});
        }
        release.source = entry.text("source");
        entry.nothing_else();
        const std::string version = release.version;
        if (!table.by_version.emplace(version, std::move(release)).second) {
            entry.fail("torch " + version + " occurs twice");
        }
    }
    file.nothing_else();
    return table;
}

SymbolTable parse_symbols(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "symbols.json", keep);
    SymbolTable table;
    for (DataObject& entry : file.objects("libraries")) {
        const std::string library = entry.text("library");
        for (DataObject& release : entry.objects("releases")) {
            const std::string version = release.text("version");
            const std::vector<std::string> symbols = release.texts("symbols");
            static_cast<void>(release.text("source"));
            release.nothing_else();
            if (symbols.empty()) {
                release.fail("'symbols' is empty");
            }
            for (const std::string& symbol : symbols) {
                put_once(table, release, std::pair{library, symbol}, version, symbol);
            }
        }
        entry.nothing_else();
    }
    file.nothing_else();
    return table;
}

VersionHints parse_versions(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "versions.json", keep);
    VersionHints hints;
    for (DataObject& entry : file.objects("libraries")) {
        VersionHint hint;
        hint.library = entry.text("library");
        hint.string_prefix = entry.optional_text("string_prefix");
        hint.symbol_pattern = entry.optional_text("symbol_pattern");
        hint.example = entry.text("example");
        hint.source = entry.text("source");
        entry.nothing_else();
        if (hint.string_prefix.empty() && hint.symbol_pattern.empty()) {
            entry.fail("neither 'string_prefix' nor 'symbol_pattern'");
        }
        try {
            static_cast<void>(std::regex(hint.symbol_pattern));
        } catch (const std::regex_error& error) {
            entry.fail(std::string{"'symbol_pattern': "} + error.what());
        }
        const std::string library = hint.library;
        put_once(hints, entry, library, std::move(hint));
    }
    file.nothing_else();
    return hints;
}

GnuVersions parse_gnu_versions(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "gnu_versions.json", keep);
    GnuVersions versions;
    for (DataObject& entry : file.objects("releases")) {
        const std::string release = entry.text("release");
        const std::vector<std::string> brought = entry.texts("versions");
        static_cast<void>(entry.text("source"));
        entry.nothing_else();
        if (brought.empty()) {
            entry.fail("'versions' is empty");
        }
        for (const std::string& version : brought) {
            put_once(versions, entry, version, release);
        }
    }
    file.nothing_else();
    return versions;
}

}  // namespace cudiag
