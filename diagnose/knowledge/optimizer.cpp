#include "diagnose/knowledge/optimizer.h"

#include <algorithm>

#include "diagnose/knowledge/data_object.h"
#include "diagnose/knowledge/loaded.h"

namespace cudiag {
namespace {

constexpr Implementation kAll[] = {Implementation::fused,     Implementation::foreach,
                                   Implementation::for_loop,  Implementation::apex,
                                   Implementation::deepspeed, Implementation::eight_bit,
                                   Implementation::cpu,       Implementation::compiled};

const Loaded<OptimizerTable>& table() {
    static const auto loaded = load_table("optimizer.json", parse_optimizers);
    return loaded;
}

std::uint64_t count_in(DataObject& entry, const std::string& key) {
    const std::string text = entry.text(key);
    if (text.size() != 1 || text.find_first_not_of("0123456789") != std::string::npos) {
        entry.fail("'" + key + "' is not a count");
    }
    return static_cast<std::uint64_t>(text.front() - '0');
}

OptimizerTable::Kernel kernel_of(DataObject& entry) {
    OptimizerTable::Kernel kernel;
    kernel.pattern = entry.text("kernel");
    const std::string name = entry.text("implementation");
    (void)entry.text("source");
    entry.nothing_else();
    const auto* const found =
        std::find_if(std::begin(kAll), std::end(kAll),
                     [&](Implementation each) { return name == name_of(each); });
    if (found == std::end(kAll)) {
        entry.fail("'" + name + "' is no implementation");
    }
    kernel.implementation = *found;
    try {
        kernel.compiled.assign(kernel.pattern, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error& error) {
        entry.fail("'" + kernel.pattern + "' is no pattern: " + error.what());
    }
    return kernel;
}

OptimizerClass class_of(DataObject& entry) {
    OptimizerClass known;
    known.name = entry.text("class");
    known.parameters = count_in(entry, "parameters");
    known.gradients = count_in(entry, "gradients");
    known.state = count_in(entry, "state");
    known.fused = entry.flag("fused");
    known.fused_in = entry.optional_text("fused_in");
    known.like_adamw = entry.optional_text("predicted_as") == "adamw";
    known.source = entry.text("source");
    entry.nothing_else();
    return known;
}

}  // namespace

OptimizerTable parse_optimizers(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "optimizer.json", keep);
    OptimizerTable read;
    for (DataObject& entry : file.objects("kernels")) {
        read.kernels.push_back(kernel_of(entry));
    }
    for (DataObject& entry : file.objects("classes")) {
        OptimizerClass known = class_of(entry);
        const bool twice =
            std::any_of(read.classes.begin(), read.classes.end(),
                        [&](const OptimizerClass& other) { return other.name == known.name; });
        if (twice) {
            entry.fail("'" + known.name + "' occurs twice");
        }
        read.classes.push_back(std::move(known));
    }
    file.nothing_else();
    return read;
}

std::optional<Implementation> implementation_of_kernel(std::string_view kernel) {
    for (const OptimizerTable::Kernel& known : table().table.kernels) {
        if (std::regex_search(kernel.begin(), kernel.end(), known.compiled)) {
            return known.implementation;
        }
    }
    return std::nullopt;
}

const OptimizerClass* optimizer_class(std::string_view name) {
    for (const OptimizerClass& known : table().table.classes) {
        if (known.name == name) {
            return &known;
        }
    }
    return nullptr;
}

std::vector<std::string> optimizer_problems() {
    return table().problem.empty() ? std::vector<std::string>{}
                                   : std::vector<std::string>{table().problem};
}

const char* name_of(Implementation implementation) {
    switch (implementation) {
        case Implementation::unknown:
            return "unknown";
        case Implementation::fused:
            return "fused";
        case Implementation::foreach:
            return "foreach";
        case Implementation::for_loop:
            return "for-loop";
        case Implementation::apex:
            return "apex";
        case Implementation::deepspeed:
            return "deepspeed";
        case Implementation::eight_bit:
            return "8-bit";
        case Implementation::cpu:
            return "cpu";
        case Implementation::compiled:
            return "compiled";
    }
    return "unknown";
}

}  // namespace cudiag
