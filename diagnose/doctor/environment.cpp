// Gathers the doctor's facts. Nothing is imported, compiled or changed.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "diagnose/build/words.h"
#include "diagnose/doctor/build_tools.h"
#include "diagnose/doctor/facts.h"
#include "diagnose/doctor/load_trial.h"
#include "diagnose/doctor/programs.h"
#include "diagnose/doctor/python_environment.h"
#include "diagnose/doctor/torch_install.h"
#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/case.h"
#include "diagnose/packages/databases.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

// Memory that the kernel could give now, by its own estimate: proc(5), /proc/meminfo.
std::uint64_t available_memory() {
    std::ifstream file{"/proc/meminfo"};
    for (std::string word; file >> word;) {
        std::uint64_t kilobytes = 0;
        if (word == "MemAvailable:" && file >> kilobytes) {
            return kilobytes << 10;
        }
    }
    return 0;
}

std::uint64_t address_space_limit() {
    rlimit limit{};
    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur
                                                                                : 0;
}

std::string mapped_runtime(const LoadTrial& trial) {
    for (const Module& module : trial.modules) {
        if (library_family(base_name(module.path)) == "cudart") {
            return module.path;
        }
    }
    return {};
}

LaunchFacts launch_facts(const DoctorFacts& facts) {
    LaunchFacts launch;
    launch.runtime = mapped_runtime(facts.import_trial);
    // cudart opens it by this name, so that its own run path counts.
    const LoadState state = load_state_of(facts.process(), {});
    launch.driver.lookup = resolve_needed(
        state, "libcuda.so.1", {launch.runtime.empty() ? state.executable : launch.runtime});
    launch.driver.path = launch.driver.lookup.found;
    launch.stub = !launch.driver.path.empty() && is_stub(launch.driver.path);
    if (!launch.driver.path.empty() && !launch.stub) {
        launch.trial = trial_alone(facts, launch.driver.path);
    }
    std::error_code error;
    const fs::path real = fs::canonical(launch.driver.path, error);
    launch.driver_release =
        driver_release_in(base_name(error ? launch.driver.path : real.string()));
    launch.module_release = driver_release_in(facts.machine.driver_module);
    return launch;
}

// Other Pythons that are at hand and have a torch: those of PATH, of the environment's variables,
// and venvs in the working directory.
std::vector<std::string> pythons_with_torch(const DoctorFacts& facts) {
    std::vector<std::string> candidates;
    for (const std::string& directory : split(facts.variable("PATH"), ':')) {
        candidates.push_back(directory + "/python3");
    }
    for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
        if (const std::string prefix = facts.variable(name); !prefix.empty()) {
            candidates.push_back(prefix + "/bin/python");
        }
    }
    std::error_code error;
    for (const char* name : {".venv", "venv", "env"}) {
        candidates.push_back(fs::absolute(name, error).string() + "/bin/python");
    }
    for (const char* prefix : {"/opt/conda", "/opt/venv"}) {
        candidates.push_back(std::string{prefix} + "/bin/python");
    }
    std::vector<std::string> found;
    std::set<std::string> seen{facts.python.prefix};
    for (const std::string& python : candidates) {
        const std::string prefix = directory_of(directory_of(python));
        if (found_on_path(python, "").empty() || !seen.insert(prefix).second) {
            continue;
        }
        for (const auto& lib : fs::directory_iterator(prefix + "/lib", error)) {
            if (fs::exists(lib.path() / "site-packages/torch/version.py", error)) {
                found.push_back(python);
                break;
            }
        }
    }
    return found;
}

// Wheels of two CUDA majors have some paths in common: nvidia/nccl/lib/libnccl.so.2.
std::vector<SharedPath> shared_paths(const DoctorFacts& facts) {
    const std::string suffix = "-cu" + facts.torch.cuda.substr(0, facts.torch.cuda.find('.'));
    std::vector<SharedPath> shared;
    for (const std::string& directory : facts.python.packages) {
        std::map<std::string, Package> owner;
        for (const Package& package : pip_packages(directory)) {
            if (package.name.rfind("nvidia-", 0) != 0) {
                continue;
            }
            for (const ListedFile& file : pip_files(package)) {
                if (file.path.find(".so") == std::string::npos) {
                    continue;
                }
                const auto [first, is_new] = owner.emplace(file.path, package);
                if (is_new || first->second.name == package.name) {
                    continue;
                }
                const Package& other = first->second;
                const Package* wanted = package.name.ends_with(suffix) ? &package
                                        : other.name.ends_with(suffix) ? &other
                                                                       : nullptr;
                shared.push_back(
                    {.path = file.path,
                     .packages = say("{} {} and {} {}", other.name, other.version, package.name,
                                     package.version),
                     .wanted = wanted == nullptr ? "" : wanted->name + "==" + wanted->version});
            }
        }
    }
    return shared;
}

std::string deepspeed_version(const PythonEnvironment& python) {
    for (const std::string& directory : python.packages) {
        if (const auto package = pip_package(directory, "deepspeed")) {
            return package->version;
        }
    }
    return {};
}

}  // namespace

DoctorFacts observe_environment(const std::string& asked, const Variables& environment) {
    DoctorFacts facts;
    facts.environment = environment;
    facts.python = python_environment(asked, environment);  // after this: where packages lie
    facts.run.processes.push_back(process_to_be(facts.python, environment));
    facts.torch = torch_install(facts.python);
    facts.deepspeed = deepspeed_version(facts.python);
    facts.machine = observe_machine();
    facts.memory = memory_group();
    facts.memory_available = available_memory();
    facts.address_space = address_space_limit();
    facts.processors = std::max(1U, std::thread::hardware_concurrency());
    if (facts.python.answered() && !facts.torch.found()) {
        facts.pythons_with_torch = pythons_with_torch(facts);
    }
    facts.shared_paths = shared_paths(facts);
    facts.tools = build_tools(facts);  // after this: what compilers say when they are asked
    facts.import_trial = trial_of_import(facts);
    facts.extensions = extensions_of(facts);
    facts.launch = launch_facts(facts);
    return facts;
}

}  // namespace cudiag
