#include "diagnose/knowledge/gpu_exceptions.h"

#include "diagnose/knowledge/data_object.h"
#include "diagnose/knowledge/loaded.h"

namespace cudiag {
namespace {

using Exceptions = std::map<std::uint32_t, GpuExceptionKind>;

const Loaded<Exceptions>& exceptions() {
    static const auto loaded = load_table("gpu_exceptions.json", parse_gpu_exceptions);
    return loaded;
}

}  // namespace

Exceptions parse_gpu_exceptions(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "gpu_exceptions.json", keep);
    Exceptions read;
    for (DataObject& entry : file.objects("exceptions")) {
        GpuExceptionKind kind;
        kind.code = static_cast<std::uint32_t>(entry.code("code"));
        kind.name = entry.text("name");
        kind.text = entry.text("text");
        kind.error = entry.code("error");
        kind.source = entry.text("source");
        entry.nothing_else();
        const std::uint32_t code = kind.code;
        put_once(read, entry, code, std::move(kind), std::to_string(code));
    }
    file.nothing_else();
    return read;
}

const GpuExceptionKind* gpu_exception_kind(std::uint32_t code) {
    const Exceptions& known = exceptions().table;
    const auto found = known.find(code);
    return found == known.end() ? nullptr : &found->second;
}

std::vector<const GpuExceptionKind*> all_gpu_exception_kinds() {
    std::vector<const GpuExceptionKind*> kinds;
    for (const auto& [code, kind] : exceptions().table) {
        kinds.push_back(&kind);
    }
    return kinds;
}

std::vector<std::string> gpu_exception_problems() {
    return exceptions().problem.empty() ? std::vector<std::string>{}
                                        : std::vector<std::string>{exceptions().problem};
}

}  // namespace cudiag
