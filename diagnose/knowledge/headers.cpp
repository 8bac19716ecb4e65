// knowledge/headers.json: owners of headers and link names, and the groups that go together.
#include <algorithm>
#include <utility>

#include "diagnose/knowledge/data_object.h"
#include "diagnose/knowledge/release_name.h"
#include "diagnose/knowledge/toolchain_tables.h"

namespace cudiag {
namespace {

HeaderWheel wheel_of(DataObject& entry) {
    HeaderWheel wheel;
    wheel.cuda_major = cuda_major_of(entry.text("cuda"));
    if (wheel.cuda_major < 11) {
        entry.fail("'cuda' names no release");
    }
    wheel.package = entry.text("pip");
    wheel.spec = entry.optional_text("spec");
    for (auto& [release, version] : entry.pairs("versions")) {
        if (cuda_major_of(release) != wheel.cuda_major) {
            entry.fail("'versions' has a release of another CUDA: " + release);
        }
        wheel.versions.emplace(release, version);
    }
    // What stands in whose place: for scripts/check-knowledge alone.
    for (auto& [release, version] : entry.pairs("instead_of")) {
        const auto found = wheel.versions.find(release);
        if (found == wheel.versions.end() || found->second == version) {
            entry.fail("'instead_of' has no other version of " + release);
        }
    }
    if (!wheel.spec.empty() && !wheel.versions.empty()) {
        entry.fail("'spec' and 'versions' exclude each other");
    }
    wheel.include_directory = entry.text("include");
    wheel.library_directory = entry.optional_text("library_directory");
    wheel.library_files = entry.texts("files");
    if (wheel.library_directory.empty() != wheel.library_files.empty()) {
        entry.fail("'library_directory' and 'files' go together");
    }
    wheel.source = entry.text("source");
    entry.nothing_else();
    return wheel;
}

Provider templated(const char* manager, const std::string& package, const std::string& spec) {
    Provider provider;
    provider.manager = manager;
    provider.package = package;
    provider.spec = spec;
    provider.pattern = package.find('{') == std::string::npos ? "" : package;
    provider.spec_pattern = spec.find('{') == std::string::npos ? "" : spec;
    return provider;
}

// conda, apt and image: the vendors' names, with placeholders for a CUDA release.
void add_vendor_providers(HeaderOwner& owner, DataObject& entry) {
    const std::string conda = entry.optional_text("conda");
    const std::string conda_spec = entry.optional_text("conda_spec");
    const std::string apt = entry.optional_text("apt");
    const std::string image = entry.optional_text("image");
    const std::string source = entry.optional_text("vendor_source");
    if ((conda + apt + image).empty() != source.empty()) {
        entry.fail("'vendor_source' goes with 'conda', 'apt' or 'image'");
    }
    if (!conda.empty()) {
        Provider provider = templated(
            "conda", conda, conda_spec.empty() ? " cuda-version={major}.{minor}" : conda_spec);
        provider.channel = "conda-forge";
        owner.providers.push_back(provider);
        if (conda_spec.empty()) {
            // conda-forge has these from CUDA 12 on; for 11 NVIDIA's channel has a label a release.
            owner.providers.back().cuda_major = 12;
            provider.cuda_major = 11;
            provider.spec.clear();
            provider.spec_pattern.clear();
            provider.channel = "nvidia/label/cuda-{major}.{minor}.0";
            owner.providers.push_back(provider);
        }
    }
    if (!apt.empty()) {
        Provider provider = templated("apt", apt, "");
        provider.note = "from NVIDIA's apt repository";
        owner.providers.push_back(provider);
    }
    if (!image.empty()) {
        owner.providers.push_back(
            templated("image", "nvidia/cuda:{image}-" + image + "-ubuntu22.04", ""));
    }
    owner.source += (owner.source.empty() || source.empty() ? "" : "; ") + source;
}

void add_plain_provider(HeaderOwner& owner, DataObject& entry) {
    Provider provider;
    provider.manager = entry.text("manager");
    provider.package = entry.text("package");
    provider.spec = entry.optional_text("spec");
    provider.note = entry.optional_text("note");
    provider.channel = provider.manager == "conda" ? "conda-forge" : "";
    entry.nothing_else();
    if (provider.manager != "pip" && provider.manager != "conda" && provider.manager != "apt") {
        entry.fail("unknown manager '" + provider.manager + "'");
    }
    owner.providers.push_back(provider);
}

HeaderOwner owner_of(DataObject& entry) {
    HeaderOwner owner;
    owner.library = entry.text("library");
    owner.description = entry.text("description");
    owner.cuda = entry.flag("cuda");
    owner.stubs = entry.flag("stubs");
    owner.cuda_from = entry.optional_text("from");
    owner.cuda_to = entry.optional_text("to");
    for (const std::string& bound : {owner.cuda_from, owner.cuda_to}) {
        if (!bound.empty() && cuda_major_of(bound) == 0) {
            entry.fail("'from' or 'to' names no release: " + bound);
        }
    }
    owner.headers = entry.texts("headers");
    owner.links = entry.texts("links");
    owner.archives = entry.texts("archives");
    owner.notes = entry.texts("notes");
    owner.source = entry.optional_text("source");
    for (DataObject& each : entry.optional_objects("wheels")) {
        HeaderWheel wheel = wheel_of(each);
        for (const HeaderWheel& other : owner.wheels) {
            if (other.cuda_major == wheel.cuda_major) {
                each.fail("two wheels of one CUDA");
            }
        }
        owner.source += (owner.source.empty() ? "" : "; ") + wheel.source;
        owner.wheels.push_back(std::move(wheel));
    }
    add_vendor_providers(owner, entry);
    for (DataObject& provider : entry.optional_objects("providers")) {
        add_plain_provider(owner, provider);
    }
    entry.nothing_else();
    if (owner.headers.empty() && owner.links.empty()) {
        entry.fail("neither 'headers' nor 'links'");
    }
    if (owner.wheels.empty() && owner.providers.empty()) {
        entry.fail("neither 'wheels' nor a package");
    }
    if (owner.source.empty()) {
        entry.fail("'source' is absent or empty");
    }
    return owner;
}

void add_linkable(HeaderTable& table, const HeaderOwner& owner, const std::string& name,
                  const char* suffix, DataObject& file) {
    Linkable linkable{name, "lib" + name + suffix, &owner, owner.stubs};
    if (!table.linkables.emplace(name, std::move(linkable)).second) {
        file.fail("'-l" + name + "' occurs twice");
    }
}

void add_to_index(HeaderTable& table, const HeaderOwner& owner, DataObject& file) {
    if (!table.by_library.emplace(owner.library, &owner).second) {
        file.fail("'" + owner.library + "' occurs twice");
    }
    for (const std::string& header : owner.headers) {
        auto& index = header.back() == '/' ? table.by_directory : table.by_header;
        if (!index.emplace(header, &owner).second) {
            file.fail("'" + header + "' occurs twice");
        }
    }
    for (const std::string& name : owner.links) {
        add_linkable(table, owner, name, ".so", file);
    }
    for (const std::string& name : owner.archives) {
        add_linkable(table, owner, name, ".a", file);
    }
}

HeaderGroup group_of(const HeaderTable& table, DataObject& entry) {
    HeaderGroup group;
    group.name = entry.text("name");
    group.included_by = entry.texts("included_by");
    group.headers = entry.texts("headers");
    group.why = entry.text("why");
    group.source = entry.text("source");
    entry.nothing_else();
    if (group.included_by.empty() || group.headers.empty()) {
        entry.fail("'included_by' or 'headers' is empty");
    }
    for (const std::string& header : group.headers) {
        const HeaderOwner* owner = find_header_owner(table, header);
        if (owner == nullptr) {
            entry.fail("nobody owns '" + header + "'");
        }
        if (std::find(group.owners.begin(), group.owners.end(), owner) == group.owners.end()) {
            group.owners.push_back(owner);
        }
    }
    return group;
}

}  // namespace

const HeaderOwner* find_header_owner(const HeaderTable& table, std::string_view header) {
    if (const auto found = table.by_header.find(header); found != table.by_header.end()) {
        return found->second;
    }
    for (auto slash = header.rfind('/'); slash != std::string_view::npos && slash != 0;
         slash = header.rfind('/', slash - 1)) {
        const auto found = table.by_directory.find(header.substr(0, slash + 1));
        if (found != table.by_directory.end()) {
            return found->second;
        }
    }
    return nullptr;
}

HeaderTable parse_headers(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "headers.json", keep);
    HeaderTable table;
    for (auto& [major, release] : file.pairs("newest")) {
        table.newest.emplace(major, release);
    }
    for (DataObject& entry : file.objects("owners")) {
        table.owners.push_back(owner_of(entry));
    }
    for (const HeaderOwner& owner : table.owners) {  // only now do they stay where they are
        add_to_index(table, owner, file);
    }
    for (DataObject& entry : file.optional_objects("groups")) {
        table.groups.push_back(group_of(table, entry));
    }
    file.nothing_else();
    return table;
}

}  // namespace cudiag
