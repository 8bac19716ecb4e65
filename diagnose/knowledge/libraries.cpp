// knowledge/libraries.json: families with templates for the vendors' package names, expanded to one
// release a SONAME.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "diagnose/knowledge/data_object.h"
#include "diagnose/knowledge/release_name.h"
#include "diagnose/knowledge/tables.h"

namespace cudiag {
namespace {

// What a family, or a release of it, says of package managers other than pip.
struct Templates {
    std::string conda, conda_spec, apt, image, vendor_source;
};

// What a command takes when only the major is known, and the tags of images.
struct Defaults {
    std::vector<std::pair<std::string, std::string>> newest;
    ImageTags images;
};

// "11.x" -> 11.8 by the defaults; "11.1-11.8" -> 11.8; "11.0" -> itself.
std::string newest_of(const std::string& cuda, const Defaults& defaults, DataObject& at) {
    std::string last = cuda.substr(cuda.find('-') == std::string::npos ? 0 : cuda.find('-') + 1);
    const std::string major = last.substr(0, last.find('.'));
    if (last != major + ".x") {
        return last;
    }
    for (const auto& [known, release] : defaults.newest) {
        if (known == major) {
            return release;
        }
    }

    at.fail("no 'newest' for CUDA " + major);
}

Templates templates_of(DataObject& at, const Templates& outer) {
    Templates own = outer;
    const auto take = [&at](const char* key, std::string& into) {
        if (at.has(key)) {
            into = at.optional_text(key);
        }
    };
    take("conda", own.conda);
    take("conda_spec", own.conda_spec);
    take("apt", own.apt);
    take("image", own.image);
    take("vendor_source", own.vendor_source);
    return own;
}

Provider made(const char* manager, const std::string& pattern, const std::string& spec_pattern,
              int major) {
    Provider provider;
    provider.manager = manager;
    provider.package = pattern;
    provider.spec = spec_pattern;
    provider.cuda_major = major;
    provider.pattern = pattern.find('{') == std::string::npos ? "" : pattern;
    provider.spec_pattern = spec_pattern.find('{') == std::string::npos ? "" : spec_pattern;
    return provider;
}

// With `release` in place of the placeholders; they must all be gone then.
Provider settled(const Provider& provider, const std::string& release, const Defaults& defaults,
                 DataObject& at) {
    Provider result = for_cuda_release(provider, release, defaults.images);
    if (result.package.find('{') != std::string::npos ||
        result.spec.find('{') != std::string::npos) {
        at.fail("placeholder left in '" + result.package + result.spec + "'");
    }
    return result;
}

void add_vendor_providers(LibraryRelease& into, const Templates& own, const std::string& newest,
                          const Defaults& defaults, int major, DataObject& at) {
    if (!own.conda.empty()) {
        // conda-forge has these packages from CUDA 12 on; for 11 NVIDIA's own channel has them
        // under a label.
        Provider conda =
            major == 11 && own.conda_spec.empty()
                ? made("conda", own.conda, "", major)
                : made("conda", own.conda,
                       own.conda_spec.empty() ? " cuda-version={major}.{minor}" : own.conda_spec,
                       major);
        conda.channel =
            major == 11 && own.conda_spec.empty() ? "nvidia/label/cuda-11.8.0" : "conda-forge";
        into.providers.push_back(settled(conda, newest, defaults, at));
    }
    if (!own.apt.empty()) {
        Provider apt = made("apt", own.apt, "", major);
        apt.note = "from NVIDIA's apt repository";
        into.providers.push_back(settled(apt, newest, defaults, at));
    }
    if (!own.image.empty() &&
        defaults.images.count(newest) != 0) {  // of later releases no tag is known
        Provider image =
            made("image", "nvidia/cuda:{image}-" + own.image + "-ubuntu22.04", "", major);
        into.providers.push_back(settled(image, newest, defaults, at));
    }
}

void add_ship(LibraryRelease& into, DataObject& ship, const Templates& outer,
              const Defaults& defaults) {
    const std::string cuda = ship.text("cuda");
    const int major = cuda_major_of(cuda);
    if (major < 11) {
        ship.fail("'cuda' names no release: " + cuda);
    }
    const std::string release = newest_of(cuda, defaults, ship);
    const std::string pip = ship.optional_text("pip");
    const std::string spec = ship.optional_text("spec");
    const std::string spec_for = ship.optional_text("spec_for");
    const std::string directory = ship.optional_text("directory");
    const std::string source = ship.text("source");
    if (pip.empty() != directory.empty()) {
        ship.fail("'pip' and 'directory' go together");
    }
    if (!pip.empty()) {
        Provider provider = made("pip", pip, spec, major);
        provider.spec_pattern = spec_for;
        provider.checked = true;
        provider.note = ship.optional_text("note");
        provider.directory = directory;
        into.providers.push_back(provider);
        if (std::find(into.pip_directories.begin(), into.pip_directories.end(), directory) ==
            into.pip_directories.end()) {
            into.pip_directories.push_back(directory);
        }
    }
    add_vendor_providers(into, templates_of(ship, outer), release, defaults, major, ship);
    ship.nothing_else();
    into.cuda += (into.cuda.empty() ? "" : ", ") + cuda;
    if (std::find(into.cuda_majors.begin(), into.cuda_majors.end(), major) ==
        into.cuda_majors.end()) {
        into.cuda_majors.push_back(major);
    }
    into.source += (into.source.empty() ? "" : "; ") + source;
}

void add_plain_provider(LibraryRelease& into, DataObject& entry) {
    Provider provider;
    provider.manager = entry.text("manager");
    provider.package = entry.text("package");
    provider.spec = entry.optional_text("spec");
    provider.note = entry.optional_text("note");
    entry.nothing_else();
    into.providers.push_back(provider);
}

LibraryRelease release_of(DataObject& entry, const LibraryRelease& family, const Templates& outer,
                          const Defaults& defaults) {
    LibraryRelease release = family;
    release.soname = entry.text("soname");
    const Templates own = templates_of(entry, outer);
    if (entry.has("ships")) {
        for (DataObject& ship : entry.objects("ships")) {
            add_ship(release, ship, own, defaults);
        }
    } else {
        release.source = entry.text("source");
    }
    for (DataObject& provider : entry.optional_objects("providers")) {
        add_plain_provider(release, provider);
    }
    for (std::string& note : entry.texts("notes")) {
        release.notes.push_back(std::move(note));
    }
    if (release.cuda_majors.size() == 1) {
        release.cuda_major = release.cuda_majors.front();
    }
    if (!own.vendor_source.empty()) {
        release.source += "; " + own.vendor_source;
    }
    entry.nothing_else();
    return release;
}

void add_family(LibraryTable& table, DataObject& entry, const Defaults& defaults) {
    LibraryRelease family;
    family.library = entry.text("library");
    family.description = entry.text("description");
    family.driver = entry.flag("driver");
    family.notes = entry.texts("notes");
    const Templates own = templates_of(entry, {});
    const std::string file = entry.text("file");
    const std::string stem = file + ".so";
    if (!table.family_of.emplace(file, family.library).second) {
        entry.fail("'" + file + "' occurs twice");
    }
    std::vector<DataObject> plain = entry.optional_objects("providers");
    for (DataObject& provider : plain) {
        add_plain_provider(family, provider);
    }
    for (DataObject& release : entry.objects("releases")) {
        LibraryRelease made_release = release_of(release, family, own, defaults);
        const std::string soname = made_release.soname;
        if (soname.rfind(stem, 0) != 0) {
            release.fail(fmt::format("'{}' is no {}", soname, stem));
        }
        if (!table.by_soname.emplace(soname, std::move(made_release)).second) {
            release.fail("'" + soname + "' occurs twice");
        }
    }
    entry.nothing_else();
}

}  // namespace

LibraryTable parse_libraries(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "libraries.json", keep);
    Defaults defaults{file.pairs("newest"), {}};
    for (auto& [release, tag] : file.pairs("images")) {
        defaults.images.emplace(release, tag);
    }
    LibraryTable table;
    for (DataObject& family : file.objects("families")) {
        add_family(table, family, defaults);
    }
    table.images = std::move(defaults.images);
    file.nothing_else();
    return table;
}

}  // namespace cudiag
