#include "cli/doctor_trials.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "cli/commands.h"
#include "diagnose/doctor/predicted.h"
#include "diagnose/doctor/programs.h"
#include "diagnose/judge.h"
#include "diagnose/loader/surroundings.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

constexpr int kLongestBuild = 600;  // seconds
constexpr int kLongestLaunch = 120;

constexpr const char* kKernel = R"(__global__ void add(float* x) { x[threadIdx.x] += 1; }
extern "C" int cudiag_add(float* x) {
    add<<<1, 32>>>(x);
    return cudaGetLastError();
}
)";

// As any extension of torch's begins, fused_adam among them.
constexpr const char* kTorchIncludes = "#include <ATen/cuda/CUDAContext.h>\n";

constexpr const char* kBuildByTorch = R"(import sys
from torch.utils.cpp_extension import load
load("cudiag_probe", [sys.argv[1]], is_python_module=False)
)";

constexpr const char* kLaunchByTorch = R"(import torch
x = torch.zeros(32, device="cuda")
x += 1
torch.cuda.synchronize()
assert x.sum().item() == 32, "the kernel did not do what it was to do"
print(torch.cuda.get_device_name(0))
)";

// Without torch: the driver alone, with a kernel in the oldest PTX that it still compiles for every
// card of today.
constexpr const char* kLaunchByDriver = R"(import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code != 0:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(code, ctypes.byref(text))
        raise RuntimeError(f"CUDA error: {(text.value or b'?').decode()}")
call("cuInit", 0)
device, context, module, function, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
ptx = b".version 6.0 .target sm_50 .address_size 64 .visible .entry put(.param .u64 p) { .reg .u64 a; .reg .u32 v; ld.param.u64 a, [p]; mov.u32 v, 42; st.global.u32 [a], v; ret; }"
call("cuModuleLoadData", ctypes.byref(module), ptx)
call("cuModuleGetFunction", ctypes.byref(function), module, b"put")
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(4))
arguments = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
call("cuCtxSynchronize")
result, name = ctypes.c_uint32(), ctypes.create_string_buffer(100)
call("cuMemcpyDtoH_v2", ctypes.byref(result), memory, ctypes.c_size_t(4))
assert result.value == 42, "the kernel did not do what it was to do"
call("cuDeviceGetName", name, 100, device)
print(name.value.decode())
)";

// A folder of its own, removed at the end.
class Scratch {
  public:
    Scratch() : path_{(fs::temp_directory_path() / "cudiag-doctor-XXXXXX").string()} {
        if (mkdtemp(path_.data()) == nullptr) {
            throw std::runtime_error(say("no temporary folder can be made: {}", path_));
        }
    }

    ~Scratch() {
        std::error_code error;
        fs::remove_all(path_, error);
    }

    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    Scratch(Scratch&&) = delete;
    Scratch& operator=(Scratch&&) = delete;

    std::string file(const std::string& name, const std::string& text) const {
        std::ofstream{path_ + "/" + name} << text;
        return path_ + "/" + name;
    }

    std::string at(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

struct Trial {
    LoaderRun run;
    double seconds = 0;
    std::optional<Finding> finding;
};

std::optional<Finding> first_error(const std::string& runs) {
    std::error_code error;
    for (const auto& run : fs::directory_iterator(runs, error)) {
        for (Finding& finding : judge(gather_facts(run.path().string()), observe_machine())) {
            if (finding.severity == Severity::error) {
                return std::move(finding);
            }
        }
    }
    return std::nullopt;
}

Trial try_under_shim(const DoctorFacts& facts, const Scratch& scratch,
                     const std::vector<std::string>& command, int seconds) {
    Variables environment = facts.environment;
    environment["TORCH_EXTENSIONS_DIR"] = scratch.at("extensions");
    environment["CUDIAG_DIR"] = scratch.at("runs");
    environment["CUDIAG_PRINT"] = "off";
    environment.erase("CUDIAG");
    if (const std::string shim = shim_path(); !shim.empty()) {
        const std::string before = facts.variable("LD_PRELOAD");
        environment["LD_PRELOAD"] = before.empty() ? shim : shim + ":" + before;
    }
    const auto begin = std::chrono::steady_clock::now();
    Trial trial;
    trial.run = ask_program(command, environment, seconds);
    trial.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!succeeded(trial.run)) {
        trial.finding = first_error(scratch.at("runs"));
    }
    return trial;
}

// The last line that a program printed: of a traceback, the exception.
std::string last_line(const std::string& text) {
    std::istringstream lines{text};
    std::string last;
    for (std::string line; std::getline(lines, line);) {
        if (line.find_first_not_of(" \t\r") != std::string::npos) {
            last = line;
        }
    }
    return last;
}

Check check_of(Question question, const char* name, const std::string& done, Trial trial) {
    Check check{.question = question,
                .name = name,
                .health = Health::green,
                .text = say("{} ({:.0f} s)", done, trial.seconds),
                .observed = true,
                .finding = std::nullopt};
    if (succeeded(trial.run)) {
        return check;
    }
    check.health = Health::red;
    const std::string said = trial.run.timed_out ? say("it did not end in {:.0f} s", trial.seconds)
                             : last_line(trial.run.err).empty() ? complaint_of(trial.run)
                                                                : last_line(trial.run.err);
    check.text = trial.finding ? trial.finding->title : said;
    if (trial.finding) {
        trial.finding->evidence["said"] = said;
        check.finding = ahead_of_time(std::move(*trial.finding));
    }
    return check;
}

}  // namespace

Check really_build(const DoctorFacts& facts) {
    const Scratch scratch;
    std::error_code error;
    fs::create_directory(scratch.at("extensions"), error);
    if (!facts.torch.found()) {
        const std::string source = scratch.file("probe.cu", kKernel);
        std::vector<std::string> command{facts.tools.nvcc.path.empty()
                                             ? facts.tools.home.home + "/bin/nvcc"
                                             : facts.tools.nvcc.path};
        if (facts.is_set("CC")) {
            command.insert(command.end(), {"-ccbin", facts.variable("CC")});
        }
        command.insert(command.end(), {"-c", source, "-o", scratch.at("probe.o")});
        return check_of(Question::build, "really-built", say("nvcc really compiled a kernel"),
                        try_under_shim(facts, scratch, command, kLongestBuild));
    }
    const std::string source = scratch.file("probe.cu", std::string{kTorchIncludes} + kKernel);
    const std::string script = scratch.file("build.py", kBuildByTorch);
    return check_of(
        Question::build, "really-built",
        say("torch really built an extension of one kernel, and loaded it"),
        try_under_shim(facts, scratch, {facts.python.path, script, source}, kLongestBuild));
}

Check really_launch(const DoctorFacts& facts) {
    const Scratch scratch;
    const std::string script =
        scratch.file("launch.py", facts.torch.found() ? kLaunchByTorch : kLaunchByDriver);
    Trial trial = try_under_shim(facts, scratch, {facts.python.path, script}, kLongestLaunch);
    const std::string device = last_line(trial.run.out);
    return check_of(Question::launch, "really-launched",
                    say("a kernel was really launched on {}", device), std::move(trial));
}

}  // namespace cudiag
