// Can a kernel be launched here? The driver, its devices, and whether it fits torch's runtime. The
// driver itself is not asked: that is for `cudiag doctor --launch`.
#include <algorithm>
#include <cerrno>

#include "diagnose/cuda/rules.h"
#include "diagnose/cuda/state.h"
#include "diagnose/doctor/predicted.h"
#include "diagnose/doctor/rules.h"
#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/release_name.h"
#include "diagnose/loader/case.h"
#include "diagnose/loader/rules.h"
#include "diagnose/packages/owner.h"
#include "diagnose/say.h"
#include "diagnose/units.h"

namespace cudiag {
namespace {

// Codes of CUresult.
constexpr int kInsufficientDriver = 35;
constexpr int kNoDevice = 100;
constexpr int kDriverMismatch = 803;

void add(Checks& checks, const char* name, Health health, std::string text,
         std::optional<Finding> finding = std::nullopt) {
    if (finding) {
        finding = ahead_of_time(std::move(*finding));
        // No call has failed yet: the code is the one that it would give.
        finding->evidence.erase("error");
        finding->evidence.erase("call");
    }
    checks.push_back({.question = Question::launch,
                      .name = name,
                      .health = health,
                      .text = std::move(text),
                      .observed = false,
                      .finding = std::move(finding)});
}

// The start of CUDA as it would fail with this code.
CudaCase case_with(const DoctorFacts& facts, int code) {
    CudaCase c{.process = facts.process(),
               .machine = facts.machine,
               .code = code,
               .error = {},
               .call = "cuInit",
               .time_ns = 0,
               .tid = 0,
               .python = {},
               .inferred = {},
               .state = load_state_of(facts.process(), {}),
               .driver = facts.launch.driver,
               .driver_version = std::nullopt,
               .driver_release = facts.launch.driver_release,
               .module_release = facts.launch.module_release,
               .runtime = facts.launch.runtime,
               .runtime_cuda = facts.torch.cuda,
               .torch = facts.torch.version};
    return c;
}

void add_told(Checks& checks, const char* name, std::optional<Finding> finding,
              const std::string& otherwise) {
    std::string text = finding ? finding->title : otherwise;
    add(checks, name, Health::red, std::move(text), std::move(finding));
}

// A machine without any sign of a card: of the one that the job will run on, nothing is known.
bool no_sign_of_a_gpu(const DoctorFacts& facts) {
    const Machine& machine = facts.machine;
    return facts.launch.driver.path.empty() && machine.device_nodes.empty() &&
           machine.driver_module.empty() && !machine.nvidia_pci && !machine.wsl;
}

bool any_gpu_node(const Machine& machine) {
    return std::any_of(
        machine.device_nodes.begin(), machine.device_nodes.end(),
        [](const std::string& node) { return node == "/dev/nvidiactl" || node == "/dev/dxg"; });
}

bool is_refused(const Machine& machine) {
    return std::any_of(machine.refused_nodes.begin(), machine.refused_nodes.end(),
                       [](const RefusedNode& node) { return node.error == EPERM; });
}

// CUDA's minor releases go together: what counts is the oldest driver of the runtime's major.
bool is_too_old(const DoctorFacts& facts) {
    const std::string release = facts.launch.module_release.empty() ? facts.launch.driver_release
                                                                    : facts.launch.module_release;
    const DriverNeed* need = facts.torch.cuda.empty() ? nullptr : driver_need(facts.torch.cuda);
    return need != nullptr && !release.empty() && compare_versions(release, need->minimum) < 0;
}

std::string driver_words(const DoctorFacts& facts) {
    const std::string& library = facts.launch.driver_release;
    const std::string& release = library.empty() ? facts.launch.module_release : library;
    const std::string cuda = cuda_of_driver(release);
    return say("driver {}{} ({})", release.empty() ? say("of an unknown release") : release,
               cuda.empty() ? "" : ", CUDA " + cuda, facts.launch.driver.path);
}

}  // namespace

void check_driver(const DoctorFacts& facts, Checks& checks) {
    const LaunchFacts& launch = facts.launch;
    if (facts.torch.found() && facts.torch.cuda.empty()) {
        return;  // the torch is what is wrong: check_torch_cuda() says so
    }
    if (launch.stub) {
        Process process = facts.process();
        process.snapshots[1] = {};
        Module runtime;
        runtime.path = launch.runtime.empty() ? launch.driver.path : launch.runtime;
        process.snapshots[1].push_back(runtime);
        auto finding = loader_stub_driver(process);
        add_told(checks, "driver", std::move(finding),
                 say("{} is the toolkit's stub: it holds no driver", launch.driver.path));
        return;
    }
    if (no_sign_of_a_gpu(facts)) {
        add(checks, "driver", Health::unknown,
            say("no GPU and no driver {}: whether it runs where they are is not known here "
                "(no NVIDIA device on PCI, no /dev/nvidia*, no libcuda.so.1)",
                facts.machine.container.empty()
                    ? say("on this machine")
                    : say("in this {} container", facts.machine.container)));
        return;
    }
    if (launch.driver.path.empty()) {
        add_told(checks, "driver", cuda_no_driver(case_with(facts, kInsufficientDriver)),
                 say("no libcuda.so.1"));
        return;
    }
    if (launch.trial.ran && !launch.trial.works()) {
        auto finding = explained_load(facts, launch.driver.path, launch.trial, {});
        add_told(checks, "driver", std::move(finding),
                 say("{} cannot be loaded: {}", launch.driver.path, launch.trial.error));
        return;
    }
    if (is_refused(facts.machine)) {
        if (auto finding = container_device_revoked(case_with(facts, kNoDevice))) {
            add_told(checks, "devices", std::move(finding), "");
            return;
        }
    }
    const auto states = states_of(case_with(facts, kNoDevice));
    if (hold(states, {"hidden_by_variable"}) || !any_gpu_node(facts.machine)) {
        add_told(checks, "devices", cuda_device_unavailable(case_with(facts, kNoDevice)),
                 say("no GPU is visible"));
        return;
    }
    if (hold(states, {"mismatch", "!compat"})) {
        add_told(checks, "driver", cuda_device_unavailable(case_with(facts, kDriverMismatch)),
                 say("the driver's library and its kernel module are of different releases"));
        return;
    }
    if (is_too_old(facts) && !case_with(facts, kInsufficientDriver).compat()) {
        add_told(checks, "driver", cuda_driver_too_old(case_with(facts, kInsufficientDriver)),
                 say("the driver is too old"));
        return;
    }
    add(checks, "driver", Health::green,
        say("{}, {} device nodes", driver_words(facts), facts.machine.device_nodes.size()));
    if (hold(states, {"uvm_missing"})) {
        add(checks, "devices", Health::yellow,
            say("/dev/nvidia-uvm is not there: CUDA has it made if nvidia-modprobe is installed, "
                "and "
                "fails with \"unknown error\" (999) otherwise"));
    }
}

void check_shared_memory(const DoctorFacts& facts, Checks& checks) {
    // Docker's default is 64 MB; a worker of a DataLoader hands each batch over there, and NCCL
    // takes some 10 MB a pair of GPUs.
    constexpr std::uint64_t kSmall = 512'000'000;
    const SharedMemory& shm = facts.machine.shared_memory;
    if (!shm.known || shm.size >= kSmall || !facts.torch.found()) {
        return;
    }
    Finding finding;
    finding.slug = "nccl-shm-too-small";
    finding.severity = Severity::warning;
    finding.confidence = Confidence::likely;
    finding.title =
        say("/dev/shm has {}: too little for workers of a DataLoader, or for "
            "NCCL between GPUs without peer access",
            bytes_text(shm.size));
    finding.evidence["size_bytes"] = shm.size;
    finding.evidence["free_bytes"] = shm.free;
    finding.evidence["container"] =
        facts.machine.container.empty() ? say("none seen") : facts.machine.container;
    finding.fixes.push_back({.text = say("give the container more (docker run --shm-size=8g; in "
                                         "Kubernetes an emptyDir of medium Memory at /dev/shm)"),
                             .command = ""});
    finding.limits = say("what the program will ask for is not known");
    std::string text = finding.title;
    add(checks, "shared-memory", Health::yellow, std::move(text), std::move(finding));
}

}  // namespace cudiag
