#include "diagnose/cuda/device_code.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "diagnose/cuda/gpu.h"
#include "diagnose/elf/elf_image.h"
#include "diagnose/packages/owner.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

std::string base_name(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

bool starts_with(const std::string& text, std::string_view prefix) {
    return text.compare(0, prefix.size(), prefix) == 0;
}

bool loads_from_file(const FailedCudaCall& call) {
    return call.name == "cuModuleLoad" || call.name == "cuLibraryLoadFromFile";
}

bool loads_from_memory(const FailedCudaCall& call) {
    return starts_with(call.name, "cuModuleLoadData") || call.name == "cuModuleLoadFatBinary" ||
           call.name == "cuLibraryLoadData";
}

// The code at an address as the file's own headers count.
std::vector<DeviceCode> code_at_address(const std::string& file, std::uint64_t address) {
    const ElfImage image{file};
    const auto offset = image.usable() ? image.offset_of(address) : std::nullopt;
    return offset ? device_code_at(file, *offset) : std::vector<DeviceCode>{};
}

// A file that was loaded whole.
void find_file(const std::string& file, const Process& process, CodeInQuestion& found) {
    found.file = (std::filesystem::path{process.cwd} / file).string();
    found.code = device_code_in(found.file);
    found.exact = !found.code.empty();
}

void find_image(const std::string& file, std::uint64_t address, CodeInQuestion& found) {
    found.file = file;
    found.code = code_at_address(found.file, address);
    found.exact = !found.code.empty();
    if (!found.exact) {
        found.code = device_code_in(found.file);
    }
}

void find_code(const FailedCudaCall& call, const Process& process, CodeInQuestion& found) {
    if (loads_from_file(call) && !call.asked_name.empty()) {
        find_file(call.asked_name, process, found);
    } else if (!call.code_file.empty()) {
        find_image(call.code_file, call.code_address, found);
    } else {
        found.in_memory = loads_from_memory(call);
    }
}

void find_owner(CodeInQuestion& found) {
    if (const auto owner = owner_of(found.file)) {
        found.package = owner->name;
        found.packaged = owner->name + " " + owner->version;
    }
    const std::string name = base_name(found.file);
    found.is_torch = found.package == "torch" || starts_with(name, "libtorch_cuda");
    if (const ElfRead read = read_elf(found.file); read.file) {
        found.links_torch = std::any_of(
            read.file->needed.begin(), read.file->needed.end(), [](const std::string& needed) {
                return starts_with(needed, "libtorch") || starts_with(needed, "libc10");
            });
    }
}

}  // namespace

CodeInQuestion code_of(const RunningCase& c) {
    CodeInQuestion found;
    if (c.failed == nullptr) {
        return found;
    }
    find_code(*c.failed, c.process, found);
    if (!found.file.empty()) {
        find_owner(found);
    }
    const bool looked_up = !loads_from_file(*c.failed) && !loads_from_memory(*c.failed);
    found.kernel = !c.failed->kernel.empty() ? c.failed->kernel
                   : looked_up               ? c.failed->asked_name
                                             : std::string{};
    return found;
}

CodeInQuestion code_of(const SlowCode& slow, const Process& process) {
    CodeInQuestion found;
    found.kernel = slow.kernel;
    if (slow.file.empty()) {
        found.in_memory = !slow.code_kind.empty();
        return found;
    }
    if (slow.address == 0) {
        find_file(slow.file, process, found);
    } else {
        find_image(slow.file, slow.address, found);
    }
    find_owner(found);
    return found;
}

void add_code(const CodeInQuestion& code, nlohmann::ordered_json& evidence) {
    if (!code.kernel.empty()) {
        evidence["kernel"] = kernel_name(code.kernel);
    }
    evidence["file"] = !code.file.empty() ? code.file
                       : code.in_memory   ? say("none: it was made while the program ran")
                                          : say("not seen");
    evidence["of"] = code.code.empty() ? say("not read")
                     : code.exact      ? say("the image that was refused")
                                       : say("the whole file");
    evidence["architectures"] = code.code.empty() ? say("not known") : device_code_words(code.code);
    if (!code.packaged.empty()) {
        evidence["package"] = code.packaged;
    }
}

std::string code_text(const CodeInQuestion& code) {
    return !code.file.empty() ? base_name(code.file)
           : code.in_memory   ? say("code that was made while the program ran")
                              : say("code that was not seen");
}

bool is_for_one_architecture(const std::vector<DeviceCode>& code) {
    return std::all_of(code.begin(), code.end(),
                       [](const DeviceCode& one) { return !one.variant.empty(); });
}

Fix build_for(const CodeInQuestion& code, int sm) {
    if (code.links_torch) {
        return {say("build {} anew for this GPU (torch's own builder does so at its next "
                    "load)",
                    base_name(code.file)),
                fmt::format("export TORCH_CUDA_ARCH_LIST={}", capability_text(sm)), false};
    }
    return {say("build {} anew for this GPU: nvcc -gencode arch=compute_{},code=sm_{} "
                "(CMake: CMAKE_CUDA_ARCHITECTURES={})",
                base_name(code.file), sm, sm, sm),
            "", false};
}

}  // namespace cudiag
