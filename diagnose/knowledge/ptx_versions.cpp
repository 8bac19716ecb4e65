#include "diagnose/knowledge/ptx_versions.h"

#include "diagnose/knowledge/cuda_tables.h"
#include "diagnose/knowledge/data_object.h"
#include "diagnose/knowledge/loaded.h"
#include "diagnose/knowledge/toolchain_tables.h"

namespace cudiag {
namespace {

const Loaded<PtxTable>& versions() {
    static const auto loaded = load_table("ptx_versions.json", parse_ptx_versions);
    return loaded;
}

// "12.4", and nothing else.
bool is_release(std::string_view text) {
    const auto dot = text.find('.');
    return dot != 0 && dot != std::string_view::npos && dot + 1 < text.size() &&
           text.find_first_not_of("0123456789.") == std::string_view::npos &&
           text.find('.', dot + 1) == std::string_view::npos;
}

}  // namespace

const PtxVersion* ptx_version(std::string_view ptx) {
    for (const PtxVersion& version : versions().table.versions) {
        if (version.ptx == ptx) {
            return &version;
        }
    }
    return nullptr;
}

std::vector<const PtxVersion*> all_ptx_versions() {
    std::vector<const PtxVersion*> result;
    result.reserve(versions().table.versions.size());
    for (const PtxVersion& version : versions().table.versions) {
        result.push_back(&version);
    }
    return result;
}

std::optional<bool> ptx_known_to(std::string_view cuda_of_driver, std::string_view ptx) {
    const PtxVersion* version = ptx_version(ptx);
    if (version == nullptr || !is_release(cuda_of_driver)) {
        return std::nullopt;
    }
    return compare_releases(cuda_of_driver, version->cuda) >= 0;
}

std::vector<std::string> ptx_problems() {
    return versions().problem.empty() ? std::vector<std::string>{}
                                      : std::vector<std::string>{versions().problem};
}

PtxTable parse_ptx_versions(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "ptx_versions.json", keep);
    static_cast<void>(file.text("source"));
    PtxTable table;
    for (DataObject& entry : file.objects("versions")) {
        PtxVersion version;
        version.ptx = entry.text("ptx");
        version.cuda = entry.text("cuda");
        version.driver = entry.optional_text("driver");
        version.checked = entry.flag("checked");
        version.source = entry.text("source");
        entry.nothing_else();
        if (!is_release(version.ptx) || !is_release(version.cuda) ||
            version.driver.find_first_not_of("0123456789") != std::string::npos) {
            entry.fail("'ptx', 'cuda' or 'driver' is no release: " + version.ptx);
        }
        if (!table.versions.empty() &&
            (compare_releases(table.versions.back().ptx, version.ptx) >= 0 ||
             compare_releases(table.versions.back().cuda, version.cuda) >= 0)) {
            entry.fail(version.ptx + " occurs twice or is out of order");
        }
        table.versions.push_back(std::move(version));
    }
    file.nothing_else();
    return table;
}

}  // namespace cudiag
