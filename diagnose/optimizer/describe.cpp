#include "diagnose/optimizer/describe.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "diagnose/say.h"

namespace cudiag {
namespace {

std::optional<std::uint64_t> number_in(const std::string& text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() && !text.empty()
               ? std::optional{number}
               : std::nullopt;
}

std::string last_part(const std::string& name) {
    return name.substr(name.rfind('.') + 1);
}

std::uint64_t bytes_of(const std::string& dtype) {
    return dtype == "float64"                          ? 8
           : dtype == "float32"                        ? 4
           : dtype == "float16" || dtype == "bfloat16" ? 2
                                                       : 0;
}

// DeepSpeed's builder chooses the width when it builds (op_builder/builder.py, simd_width), and
// ninja's file beside the library tells which.
void read_simd(Optimizer& optimizer) {
    constexpr struct {
        const char* flag;
        const char* name;
    } kWidths[] = {{"-D__AVX512__", "AVX512"},
                   {"-D__AVX256__", "AVX2"},
                   {"-D__SVE__", "SVE"},
                   {"-D__NEON__", "NEON"},
                   {"-D__SCALAR__", "scalar"}};

    const auto slash = optimizer.library.rfind('/');
    const std::string path =
        slash == std::string::npos ? "" : optimizer.library.substr(0, slash + 1) + "build.ninja";
    std::ifstream file{path};
    std::stringstream text;
    text << file.rdbuf();
    for (const auto& width : kWidths) {
        if (file && text.str().find(width.flag) != std::string::npos) {
            optimizer.simd = width.name;
            optimizer.simd_source = path + ": " + width.flag;
            return;
        }
    }
}

// dtype, device, "elements*tensors elements*tensors …" to its group; left out unless it accounts
// for all of the group.
void add_runs(const std::vector<std::string>& values, std::vector<ParameterGroup>& groups) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const ParameterGroup& each) {
        return values.size() >= 3 && each.dtype == values[0] && each.device == values[1];
    });
    if (group == groups.end()) {
        return;
    }
    std::vector<TensorRun> runs;
    std::uint64_t elements = 0;
    std::uint64_t tensors = 0;
    std::stringstream words{values[2]};
    for (std::string word; words >> word;) {
        const auto star = word.find('*');
        const auto each = number_in(word.substr(0, star));
        const auto count =
            star == std::string::npos ? std::nullopt : number_in(word.substr(star + 1));
        if (!each || !count || *count > group->tensors - tensors ||
            (*each != 0 && *count > (group->elements - elements) / *each)) {
            return;
        }
        runs.push_back({.elements = *each, .tensors = *count});
        elements += *each * *count;
        tensors += *count;
    }
    if (elements == group->elements && tensors == group->tensors) {
        group->runs = std::move(runs);
    }
}

}  // namespace

Optimizer describe_optimizer(const OptimizerText& text) {
    Optimizer optimizer;
    optimizer.name = text.first("class");
    optimizer.kind = optimizer.name.empty() ? say("optimizer kernels") : last_part(optimizer.name);
    optimizer.described = !optimizer.name.empty();
    optimizer.fused = text.first("fused");
    optimizer.foreach = text.first("foreach");
    optimizer.capturable = text.first("capturable");
    optimizer.debugger = text.first("debugger");
    optimizer.cpu_threads = number_in(text.first("threads"));
    optimizer.cpus_allowed = number_in(text.first("cpus"));
    optimizer.library = text.first("library");
    for (const auto& values : text.all("parameters")) {
        if (values.size() >= 4) {
            optimizer.parameters.push_back({.dtype = values[0],
                                            .device = values[1],
                                            .tensors = number_in(values[2]).value_or(0),
                                            .elements = number_in(values[3]).value_or(0)});
        }
    }
    for (const auto& values : text.all("sizes")) {
        add_runs(values, optimizer.parameters);
    }
    for (const auto& values : text.all("type")) {
        if (!values.empty()) {
            optimizer.tensor_types.push_back(values.front());
        }
    }
    if (!optimizer.library.empty()) {
        read_simd(optimizer);
    }
    return optimizer;
}

const OptimizerClass* known_class(const OptimizerText& text) {
    if (const OptimizerClass* known = optimizer_class(last_part(text.first("class")))) {
        return known;
    }
    for (const auto& values : text.all("base")) {
        const OptimizerClass* known =
            values.empty() ? nullptr : optimizer_class(last_part(values.front()));
        if (known != nullptr) {
            return known;
        }
    }
    return nullptr;
}

bool is_of_torch(const OptimizerText& text) {
    const auto of_torch = [](const std::string& name) {
        return name.rfind("torch.optim.", 0) == 0;
    };
    const auto bases = text.all("base");
    return of_torch(text.first("class")) ||
           std::any_of(bases.begin(), bases.end(), [&](const auto& values) {
               return !values.empty() && of_torch(values.front());
           });
}

Traffic traffic_of(const OptimizerText& text, const Optimizer& optimizer) {
    const OptimizerClass* const known = known_class(text);
    Traffic traffic;
    if (known == nullptr || optimizer.implementation == Implementation::eight_bit ||
        optimizer.implementation == Implementation::cpu || optimizer.parameters.empty()) {
        return traffic;
    }
    const std::string momentum = text.first("momentum");
    const bool more_state =
        text.first("amsgrad") == "True" ||
        (known->name == "SGD" && !momentum.empty() && momentum != "0" && momentum != "0.0");
    traffic.known = true;
    for (const ParameterGroup& group : optimizer.parameters) {
        const std::uint64_t bytes = bytes_of(group.dtype);
        // torch keeps the state in the parameters' type; of others that is known of float32 alone.
        traffic.known = traffic.known && bytes != 0 && (is_of_torch(text) || bytes == 4);
        traffic.parameters += known->parameters * bytes * group.elements;
        traffic.gradients += known->gradients * bytes * group.elements;
        traffic.state += (known->state + (more_state ? 2 : 0)) * bytes * group.elements;
    }
    return traffic.known ? traffic : Traffic{};
}

Implementation expected_implementation(const Optimizer& optimizer) {
    const auto& groups = optimizer.parameters;
    const bool on_cpu =
        !groups.empty() && std::all_of(groups.begin(), groups.end(),
                                       [](const auto& group) { return group.device == "cpu"; });
    return on_cpu                         ? Implementation::cpu
           : optimizer.fused == "True"    ? Implementation::fused
           : optimizer.foreach == "True"  ? Implementation::foreach
           : optimizer.foreach == "False" ? Implementation::for_loop
                                          : Implementation::unknown;
}

}  // namespace cudiag
