#include "diagnose/cuda/code.h"

#include <optional>

#include "diagnose/elf/elf_image.h"

namespace cudiag {

LoadedCode code_of(const FailedCudaCall& call) {
    LoadedCode code;
    code.file = !call.code_file.empty() ? call.code_file : std::string{};
    if (code.file.empty()) {
        // cuModuleLoad and cuLibraryLoadFromFile name it themselves.
        code.file = call.asked_name.find('/') != std::string::npos ? call.asked_name : "";
        code.codes = code.file.empty() ? std::vector<DeviceCode>{} : device_code_in(code.file);
        code.exact = !code.codes.empty();
        return code;
    }
    std::optional<std::uint64_t> offset;
    if (const ElfImage image{code.file}; image.usable()) {
        offset = image.offset_of(call.code_address);
    }
    if (offset) {
        code.codes = device_code_at(code.file, *offset);
        code.exact = !code.codes.empty();
    }
    if (code.codes.empty()) {
        code.codes = device_code_in(code.file);
    }
    return code;
}

}  // namespace cudiag
