#include "diagnose/knowledge/gpu_faults.h"

#include <algorithm>
#include <map>
#include <regex>

#include "diagnose/knowledge/data_object.h"
#include "diagnose/knowledge/gpu_fault_tables.h"
#include "diagnose/knowledge/loaded.h"

namespace cudiag {
namespace {

const Loaded<GpuFaultTable>& table() {
    static const auto loaded = load_table("gpu_faults.json", parse_gpu_faults);
    return loaded;
}

GpuFault fault_of(DataObject& entry) {
    GpuFault fault;
    fault.code = entry.code("code");
    fault.title = entry.text("title");
    for (DataObject& remedy : entry.optional_objects("remedies")) {
        fault.remedies.push_back(
            {.text = remedy.text("text"), .command = remedy.optional_text("command")});
        remedy.nothing_else();
    }
    fault.source = entry.text("source");
    entry.nothing_else();
    return fault;
}

KernelHint hint_of(DataObject& entry) {
    KernelHint hint;
    hint.name = entry.text("name");
    hint.pattern = entry.text("kernel");
    for (const std::string& code : entry.texts("codes")) {
        hint.codes.push_back(entry.code_in(code));
    }
    hint.text = entry.text("text");
    hint.command = entry.optional_text("command");
    hint.source = entry.text("source");
    if (hint.codes.empty()) {
        entry.fail("counts with no code");
    }
    entry.nothing_else();
    return hint;
}

}  // namespace

GpuFaultTable parse_gpu_faults(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "gpu_faults.json", keep);
    GpuFaultTable read;
    for (DataObject& entry : file.objects("faults")) {
        GpuFault fault = fault_of(entry);
        const int code = fault.code;
        put_once(read.by_code, entry, code, std::move(fault), std::to_string(code));
    }
    for (DataObject& entry : file.objects("hints")) {
        KernelHint hint = hint_of(entry);
        try {
            read.compiled.emplace_back(hint.pattern, std::regex::ECMAScript | std::regex::icase);
        } catch (const std::regex_error& error) {
            entry.fail("'" + hint.name + "' is no pattern: " + error.what());
        }
        read.hints.push_back(std::move(hint));
    }
    file.nothing_else();
    return read;
}

const GpuFault* gpu_fault(int code) {
    const auto& faults = table().table.by_code;
    const auto found = faults.find(code);
    return found == faults.end() ? nullptr : &found->second;
}

std::vector<const GpuFault*> all_gpu_faults() {
    std::vector<const GpuFault*> faults;
    for (const auto& [code, fault] : table().table.by_code) {
        faults.push_back(&fault);
    }
    return faults;
}

const KernelHint* kernel_hint(std::string_view kernel, int code) {
    const GpuFaultTable& known = table().table;
    for (std::size_t i = 0; i < known.hints.size(); ++i) {
        const KernelHint& hint = known.hints[i];
        if (std::find(hint.codes.begin(), hint.codes.end(), code) != hint.codes.end() &&
            std::regex_search(kernel.begin(), kernel.end(), known.compiled[i])) {
            return &hint;
        }
    }
    return nullptr;
}

std::vector<const KernelHint*> all_kernel_hints() {
    std::vector<const KernelHint*> hints;
    for (const KernelHint& hint : table().table.hints) {
        hints.push_back(&hint);
    }
    return hints;
}

std::vector<std::string> gpu_fault_problems() {
    return table().problem.empty() ? std::vector<std::string>{}
                                   : std::vector<std::string>{table().problem};
}

}  // namespace cudiag
