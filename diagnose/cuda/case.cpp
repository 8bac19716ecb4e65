#include "diagnose/cuda/case.h"

#include <algorithm>
#include <filesystem>

#include "diagnose/cuda/told.h"
#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/knowledge.h"
#include "diagnose/knowledge/release_name.h"
#include "diagnose/loader/case.h"
#include "diagnose/loader/file_version.h"
#include "diagnose/loader/library_path.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

constexpr int kInsufficientDriver = 35;

// Of some codes only if one of these calls gave it: from others they mean other things.
bool about_the_start(int code, const std::string& call) {
    const UnavailableCode* known = unavailable_code(code);
    const bool by_any = known == nullptr || known->calls.empty();
    return is_about_the_start(code) &&
           (by_any ||
            std::find(known->calls.begin(), known->calls.end(), call) != known->calls.end());
}

std::string two_numbers(const std::string& version) {
    const auto dot = version.find('.');
    return dot == std::string::npos ? std::string{} : version.substr(0, version.find('.', dot + 1));
}

// "13.0" of "2.13.0+cu130"; else what PyPI's wheel of that release was built for.
std::string cuda_of_torch(const std::string& torch) {
    const auto local = torch.find("+cu");
    if (local != std::string::npos && torch.size() == local + 6) {
        return torch.substr(local + 3, 2) + "." + torch.substr(local + 5);
    }
    const TorchRelease* release = torch.empty() ? nullptr : torch_release(torch);
    return release == nullptr ? std::string{} : release->cuda;
}

// Of a libcudart: as its package or its own name tells. The SONAME of CUDA 11, "11.0", stands for
// all of 11.x.
std::string cuda_of_runtime(const std::string& path) {
    if (path.empty()) {
        return {};
    }
    const auto owner = owner_of(path);
    if (owner && (owner->name.rfind("nvidia-cuda-runtime", 0) == 0 ||
                  owner->name.rfind("cuda-cudart", 0) == 0)) {
        return two_numbers(owner->version);
    }
    const std::string version = two_numbers(file_version(path));
    const LibraryRelease* release = library_release(file_name(path));
    return version.empty() || (release != nullptr && release->soname.ends_with(".so." + version))
               ? (release == nullptr ? std::string{} : release->cuda)
               : version;
}

// Of a runtime that is linked into a package's own files.
std::string cuda_of_package(const Process& process, const std::vector<Module>& modules) {
    for (const RuntimePackage& known : runtime_packages()) {
        const bool mapped = std::any_of(modules.begin(), modules.end(), [&](const Module& module) {
            return module.path.find(known.directory) != std::string::npos;
        });
        for (const std::string& site :
             mapped ? site_packages_dirs(process, modules) : std::vector<std::string>{}) {
            if (pip_package(site, known.package)) {
                return known.cuda;
            }
        }
    }
    return {};
}

void find_runtime(CudaCase& c, const std::vector<Module>& modules) {
    bool torch_is_in = false;
    for (const Module& module : modules) {
        const std::string name = file_name(module.path);
        if (library_family(name) == "cudart") {
            c.runtime = module.path;
        }
        torch_is_in = torch_is_in || name.rfind("libtorch", 0) == 0 || name.rfind("libc10", 0) == 0;
    }
    if (torch_is_in) {
        for (const std::string& site : site_packages_dirs(c.process, modules)) {
            if (const auto package = pip_package(site, "torch")) {
                c.torch = package->version;
                break;
            }
        }
    }
    c.runtime_cuda = cuda_of_runtime(c.runtime);
    if (c.runtime_cuda.empty()) {
        c.runtime_cuda = cuda_of_torch(c.torch);
    }
    if (c.runtime_cuda.empty()) {
        c.runtime_cuda = cuda_of_package(c.process, modules);
    }
}

void find_driver(CudaCase& c, const std::vector<Module>& modules) {
    c.driver = driver_library_of(c.state, modules);
    if (c.driver.path.empty() && c.driver.lookup.steps.empty()) {
        c.driver.lookup = resolve_needed(c.state, "libcuda.so.1", {c.state.executable});
        c.driver.path = c.driver.lookup.found;
    }
    if (c.process.cuda_driver) {
        if (!c.process.cuda_driver->path.empty()) {
            c.driver.path = c.process.cuda_driver->path;
        }
        if (c.process.cuda_driver->version != 0) {
            c.driver_version = c.process.cuda_driver->version;
        }
    }
    std::error_code error;
    const std::string real = std::filesystem::canonical(c.driver.path, error).string();
    c.driver_release = driver_release_in(file_name(error ? c.driver.path : real));
    c.module_release = driver_release_in(c.machine.driver_module);
}

std::string or_unknown(const std::string& text) {
    return text.empty() ? say("not known") : text;
}

// Without a word of the program: a runtime refuses a driver of an older major.
std::optional<Told> refused_driver(const Process& process) {
    if (had_other_words(process) || !process.cuda_driver || process.cuda_driver->version == 0 ||
        process.snapshots.empty()) {
        return std::nullopt;
    }
    for (const Module& module : process.snapshots.rbegin()->second) {
        const LibraryRelease* release = library_release(file_name(module.path));
        if (release != nullptr && release->library == "cudart" &&
            release->cuda_major > static_cast<int>(process.cuda_driver->version / 1000)) {
            Told told;
            told.code = kInsufficientDriver;
            told.error = cuda_error(kInsufficientDriver) == nullptr
                             ? std::string{}
                             : cuda_error(kInsufficientDriver)->text;
            told.time_ns = process.end_time_ns;
            told.inferred = say("the runtime in the process refuses such a driver");
            return told;
        }
    }
    return std::nullopt;
}

}  // namespace

bool CudaCase::compat() const {
    return driver.path.find("/compat/") != std::string::npos;
}

bool CudaCase::from_variable() const {
    return std::any_of(
        driver.lookup.steps.begin(), driver.lookup.steps.end(),
        [](const SearchStep& step) { return step.matched && step.rule == Rule::ld_library_path; });
}

std::string CudaCase::directory() const {
    for (const SearchStep& step : driver.lookup.steps) {
        if (step.matched && step.rule != Rule::cache) {
            return step.dir;
        }
    }
    const auto slash = driver.path.rfind('/');
    return slash == std::string::npos ? std::string{} : driver.path.substr(0, slash);
}

std::string CudaCase::rule() const {
    for (const SearchStep& step : driver.lookup.steps) {
        if (step.matched) {
            return why(step);
        }
    }
    return driver.path.empty() ? "nowhere" : say("by its path");
}

std::string CudaCase::driver_cuda() const {
    if (driver_version && *driver_version != 0) {
        return cuda_release_of(*driver_version);
    }
    return cuda_of_driver(!driver_release.empty() ? driver_release : module_release);
}

std::string CudaCase::variable(const std::string& name) const {
    const auto found = process.environment.find(name);
    return found == process.environment.end() ? std::string{} : found->second;
}

std::optional<CudaCase> cuda_case_of(const Process& process, const Machine& machine) {
    if (!process.failed()) {
        return std::nullopt;
    }
    std::optional<Told> told = told_of(process);
    if (!told) {
        told = refused_driver(process);
    }
    if (!told || !about_the_start(told->code, told->call)) {
        return std::nullopt;
    }
    CudaCase c{.process = process,
               .machine = machine,
               .code = told->code,
               .error = told->error,
               .call = told->call,
               .time_ns = told->time_ns,
               .tid = told->tid,
               .python = told->python,
               .inferred = told->inferred,
               .state = load_state_of(process, {}),
               .driver = {},
               .driver_version = told->driver_version,
               .driver_release = {},
               .module_release = {},
               .runtime = {},
               .runtime_cuda = {},
               .torch = {}};
    const std::vector<Module> none;
    const std::vector<Module>& modules =
        process.snapshots.empty() ? none : process.snapshots.rbegin()->second;
    find_driver(c, modules);
    find_runtime(c, modules);
    return c;
}

Finding begin_finding(const CudaCase& c, const char* slug, std::string title) {
    Finding finding;
    finding.slug = slug;
    finding.title = std::move(title);
    finding.confidence = c.inferred.empty() ? Confidence::certain : Confidence::likely;
    finding.limits =
        c.inferred.empty() ? "" : say("that the process ended of this is inferred: {}", c.inferred);
    finding.pid = c.process.pid;
    finding.tid = c.tid;
    finding.argv = c.process.argv;
    finding.time_ns = c.time_ns != 0               ? c.time_ns
                      : c.process.end_time_ns != 0 ? c.process.end_time_ns
                                                   : c.process.start_time_ns;
    finding.python = c.python;
    finding.evidence["error"] = c.error;
    finding.evidence["code"] = c.code;
    if (const CudaError* known = cuda_error(c.code)) {
        finding.evidence["code_name"] = known->runtime.empty() ? known->driver : known->runtime;
        finding.evidence["meaning"] = say_known(known->meaning);
    }
    return finding;
}

void add_driver(const CudaCase& c, nlohmann::ordered_json& evidence) {
    evidence["driver"] = c.driver.path.empty() ? say("no libcuda.so.1 found") : c.driver.path;
    evidence["driver_chosen_by"] = c.rule();
    evidence["driver_release"] = or_unknown(c.driver_release);
    evidence["driver_cuda"] = or_unknown(c.driver_cuda());
    evidence["kernel_module"] = c.machine.driver_module.empty()
                                    ? say("none loaded (no /proc/driver/nvidia)")
                                    : c.machine.driver_module;
}

void add_runtime(const CudaCase& c, nlohmann::ordered_json& evidence) {
    evidence["runtime"] =
        c.runtime.empty() ? say("no libcudart mapped (it may be linked in)") : c.runtime;
    evidence["runtime_cuda"] = or_unknown(c.runtime_cuda);
    if (!c.torch.empty()) {
        evidence["torch"] = c.torch;
    }
}

std::string without_library_path(const CudaCase& c, const std::string& directory) {
    const std::string rest = without_directory(c.state.ld_library_path, directory);
    return rest.empty() ? "unset LD_LIBRARY_PATH" : "export LD_LIBRARY_PATH=" + shell_quoted(rest);
}

}  // namespace cudiag
