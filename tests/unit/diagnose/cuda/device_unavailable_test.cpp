#include <cerrno>

#include "diagnose/cuda/state.h"
#include "diagnose/knowledge/cuda.h"
#include "tests/unit/diagnose/cuda/facts.h"

namespace cudiag {
namespace {

using testing::advises;
using testing::failed_call;
using testing::python_with_driver;
using testing::raised;
using testing::with_nodes;

Process told(int code) {
    Process process = python_with_driver("/drv/libcuda.so.570.133.20", 12080);
    process.exceptions = {raised("Unexpected error from cudaGetDeviceCount(). Error " +
                                 std::to_string(code) + ": words")};
    return process;
}

Finding finding_of(const Process& process, const Machine& machine = {}) {
    const auto finding = cuda_cannot_start(process, machine);
    EXPECT_TRUE(finding);
    return finding.value_or(Finding{});
}

TEST(CudaDeviceUnavailable, TellsEveryCodeAndMendsNoneByAPackage) {
    for (const UnavailableCode* code : all_unavailable_codes()) {
        SCOPED_TRACE(code->code);
        const Finding finding = finding_of(told(code->code));
        EXPECT_EQ(finding.slug, "cuda-device-unavailable");
        EXPECT_EQ(finding.evidence["code"], code->code);
        EXPECT_EQ(finding.evidence["cuda_visible_devices"], "not set");
        for (const Fix& fix : finding.fixes) {
            EXPECT_EQ((fix.text + fix.command).find('{'), std::string::npos) << fix.text;
            EXPECT_EQ(fix.command.find("pip"), std::string::npos) << fix.command;
            EXPECT_EQ(fix.command.find("install"), std::string::npos) << fix.command;
        }
    }
}

TEST(CudaDeviceUnavailable, RemediesAskOnlyForStatesThatExist) {
    const Process process = told(100);
    const Machine machine;
    const auto c = cuda_case_of(process, machine);
    ASSERT_TRUE(c);
    const auto states = states_of(*c);
    const auto words = words_of(*c);
    for (const UnavailableCode* code : all_unavailable_codes()) {
        std::vector<std::string> texts{code->title};
        for (const UnavailableRemedy& remedy : code->remedies) {
            texts.push_back(remedy.text);
            texts.push_back(remedy.command);
            for (const std::string& name : remedy.when) {
                EXPECT_EQ(states.count(name.front() == '!' ? name.substr(1) : name), 1U)
                    << code->code << ": " << name;
            }
        }
        for (const std::string& text : texts) {
            EXPECT_EQ(filled(text, words).find('{'), std::string::npos) << text;
        }
    }
    EXPECT_FALSE(hold(states, {"no_such_state"}));
    EXPECT_FALSE(hold(states, {"!no_such_state"}));
}

TEST(CudaDeviceUnavailable, NamesTheVariableOnlyWhereItHidesTheGpus) {
    Process process = told(100);
    EXPECT_TRUE(finding_of(process).fixes.empty() ||
                !advises(finding_of(process), "CUDA_VISIBLE_DEVICES"));
    process.environment["CUDA_VISIBLE_DEVICES"] = "";
    EXPECT_EQ(finding_of(process).fixes.front().command, "unset CUDA_VISIBLE_DEVICES");
    process.environment["CUDA_VISIBLE_DEVICES"] = "3";
    EXPECT_FALSE(advises(finding_of(process), "unset"));
    EXPECT_TRUE(advises(finding_of(process), "nvidia-smi -L"));
}

TEST(CudaDeviceUnavailable, TellsAJobWithoutAGpuFromAMachineWithoutOne) {
    Machine machine = with_nodes({"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"});
    machine.refused_nodes = {{"/dev/nvidia0", EPERM}};
    EXPECT_FALSE(advises(finding_of(told(100), machine), "--gres"));
    machine.refused_nodes.push_back({"/dev/nvidia1", EPERM});
    EXPECT_TRUE(advises(finding_of(told(100), machine), "--gres"));
}

TEST(CudaDeviceUnavailable, OfTwoReleasesNamesBothAndSaysWhoseTurnItIs) {
    Machine machine;
    machine.driver_module =
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Fri Jan 17 16:12:37 UTC 2025";
    const Finding host = finding_of(told(803), machine);
    EXPECT_NE(host.title.find("library 570.133.20, kernel module 570.86.15"), std::string::npos)
        << host.title;
    EXPECT_TRUE(advises(host, "sudo reboot"));
    machine.container = "docker";
    const Finding container = finding_of(told(803), machine);
    EXPECT_FALSE(advises(container, "reboot"));
    EXPECT_TRUE(advises(container, "restart the container"));
    machine.driver_module.clear();
    EXPECT_TRUE(finding_of(told(803), machine).fixes.empty()) << "the module's release is not seen";
}

TEST(CudaDeviceUnavailable, KnowsWhatNvmlSaysOfTwoReleases) {
    Machine machine;
    machine.driver_module =
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Fri Jan 17 16:12:37 UTC 2025";
    for (const char* words : {"Failed to initialize NVML: Driver/library version mismatch",
                              "Driver/library version mismatch"}) {
        Process process = python_with_driver("/drv/libcuda.so.570.133.20", 12080);
        process.exceptions = {raised(words)};
        const Finding finding = finding_of(process, machine);
        EXPECT_EQ(finding.slug, "cuda-device-unavailable");
        EXPECT_EQ(finding.evidence["call"], "nvmlInit");
        EXPECT_NE(finding.title.find("library 570.133.20, kernel module 570.86.15"),
                  std::string::npos)
            << finding.title;
        EXPECT_TRUE(advises(finding, "sudo reboot"));
    }
}

TEST(CudaDeviceUnavailable, LaysAnErrorOfTheMemoryToTheHardware) {
    Process torch = python_with_driver("/drv/libcuda.so.570.133.20", 12080);
    torch.exceptions = {
        raised("CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be "
               "asynchronously reported at some other API call")};
    Process solver = torch;
    solver.exe = "/opt/solver";
    solver.argv = {solver.exe};
    solver.exceptions.clear();
    solver.cuda_failures = {failed_call("cuStreamSynchronize", 214)};
    for (const Process* process : {&torch, &solver}) {
        const Finding finding = finding_of(*process);
        EXPECT_EQ(finding.slug, "cuda-device-unavailable");
        EXPECT_EQ(finding.evidence["code"], 214);
        EXPECT_NE(finding.title.find("the hardware's"), std::string::npos) << finding.title;
        EXPECT_TRUE(advises(finding, "ROW_REMAPPER"));
        EXPECT_TRUE(advises(finding, "have it replaced"));
    }
}

TEST(CudaDeviceUnavailable, IsSilentOfWhatNvmlDoesNotKnow) {
    Process process = python_with_driver("/drv/libcuda.so.570.133.20", 12080);
    process.exceptions = {raised("Failed to initialize NVML: Unknown Error")};
    EXPECT_FALSE(cuda_cannot_start(process, with_nodes({"/dev/nvidiactl"})));
}

TEST(CudaDeviceUnavailable, SendsAContainerToItsHostForTheFabric) {
    Machine machine;
    EXPECT_TRUE(advises(finding_of(told(802), machine), "systemctl start nvidia-fabricmanager"));
    machine.fabric_manager = true;
    EXPECT_FALSE(advises(finding_of(told(802), machine), "systemctl start"));
    machine.container = "kubernetes";
    EXPECT_TRUE(advises(finding_of(told(802), machine), "on the host alone"));
}

TEST(CudaDeviceUnavailable, OfMigPicksAnInstanceByItsUuid) {
    Machine machine;
    machine.mig_instances = {"gpu0/gi1", "gpu0/gi2"};
    const Finding finding = finding_of(told(101), machine);
    EXPECT_TRUE(advises(finding, "CUDA_VISIBLE_DEVICES=MIG-"));
    EXPECT_EQ(finding.evidence["mig_instances"].size(), 2U);
    EXPECT_TRUE(finding_of(told(101)).fixes.empty());
}

TEST(CudaDeviceUnavailable, OfAnUnknownErrorLooksAtTheUvmNode) {
    Machine machine = with_nodes({"/dev/nvidia0", "/dev/nvidiactl"});
    EXPECT_TRUE(advises(finding_of(told(999), machine), "nvidia-modprobe -c 0 -u"));
    machine.device_nodes.push_back("/dev/nvidia-uvm");
    const Finding stale = finding_of(told(999), machine);
    EXPECT_TRUE(advises(stale, "modprobe nvidia_uvm"));
    EXPECT_FALSE(advises(stale, "nvidia-modprobe"));
    EXPECT_EQ(stale.confidence, Confidence::likely);
}

TEST(CudaDeviceUnavailable, OfAFailedInitialisationNamesHmmOnlyWhereItIsOn) {
    Machine machine;
    EXPECT_TRUE(finding_of(told(3), machine).fixes.empty());
    machine.uvm_hmm_disabled = "N";
    EXPECT_TRUE(advises(finding_of(told(3), machine), "uvm_disable_hmm=1"));
    machine.uvm_hmm_disabled = "Y";
    EXPECT_TRUE(finding_of(told(3), machine).fixes.empty());
}

}  // namespace
}  // namespace cudiag
