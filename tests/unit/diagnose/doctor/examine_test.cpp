#include <gtest/gtest.h>

#include "diagnose/knowledge/toolchain.h"
#include "tests/unit/diagnose/doctor/healthy.h"

namespace cudiag {
namespace {

using testing::cause_of;
using testing::check_named;
using testing::health_of;
using testing::healthy;
using testing::set;
using testing::wanted;

TEST(Doctor, FindsNothingAmissWhereAllIsWell) {
    const Examination examination = examine(healthy());
    EXPECT_FALSE(examination.any_red());
    for (const Check& check : examination.checks) {
        EXPECT_EQ(check.health, Health::green) << check.name << ": " << check.text;
        EXPECT_FALSE(check.finding) << check.name;
        EXPECT_FALSE(check.text.empty()) << check.name;
    }
    ASSERT_EQ(examination.answers.size(), 4U);
    for (const Answer& answer : examination.answers) {
        EXPECT_EQ(answer.health, Health::green) << answer.text;
    }
}

TEST(DoctorToolkit, TellsARuntimeFromAToolkit) {
    DoctorFacts facts = healthy();
    facts.tools = BuildTools{.home = {},
                             .toolkit = {},
                             .nvcc = {},
                             .missing_tools = {},
                             .nvcc_host = {},
                             .cxx = facts.tools.cxx,
                             .ninja = facts.tools.ninja,
                             .headers = {},
                             .link_directories = {},
                             .cudart = {},
                             .cudart_soname = {},
                             .wrapper = {},
                             .extensions_root = facts.tools.extensions_root,
                             .unwritable = {},
                             .locks = {}};
    const Examination examination = examine(facts);
    EXPECT_EQ(health_of(examination, Question::import), Health::green);
    EXPECT_EQ(health_of(examination, Question::build), Health::red);
    EXPECT_EQ(health_of(examination, Question::launch), Health::green);
    EXPECT_EQ(cause_of(examination, Question::build), "build-missing-compiler");
    EXPECT_NE(
        check_named(examination, "toolkit")
            ->text.find(
                "torch sees the GPU, but nothing here can compile CUDA: torch's wheels bring the "
                "CUDA 13.0 runtime, not a toolkit"),
        std::string::npos)
        << check_named(examination, "toolkit")->text;
    EXPECT_FALSE(check_named(examination, "toolkit")->finding->fixes.empty());
}

TEST(DoctorToolkit, NamesACudaHomeThatLeadsNowhere) {
    DoctorFacts facts = healthy();
    set(facts, "CUDA_HOME", "/opt/nonexist");
    facts.tools.home = {.home = "/opt/nonexist", .rule = "CUDA_HOME"};
    facts.tools.toolkit = {};
    facts.tools.nvcc = {.asked = "/opt/nonexist/bin/nvcc", .path = "", .runs = false, .said = ""};
    const Examination examination = examine(facts);
    EXPECT_EQ(cause_of(examination, Question::build), "build-missing-compiler");
    EXPECT_NE(check_named(examination, "toolkit")
                  ->text.find("CUDA_HOME=/opt/nonexist leads to no toolkit"),
              std::string::npos);
}

TEST(DoctorToolkit, RefusesAnotherMajorAndAcceptsAnotherMinor) {
    DoctorFacts facts = healthy();
    facts.tools.toolkit.release = "12.8";
    EXPECT_EQ(cause_of(examine(facts), Question::build), "build-toolkit-mismatch");
    facts.tools.toolkit.release = "13.2";
    EXPECT_EQ(health_of(examine(facts), Question::build), Health::green);
}

TEST(DoctorToolkit, SaysWhichOfItsOwnToolsIsGone) {
    DoctorFacts facts = healthy();
    facts.tools.missing_tools = {"cicc"};
    const Examination examination = examine(facts);
    EXPECT_EQ(cause_of(examination, Question::build), "build-missing-compiler");
    EXPECT_NE(check_named(examination, "toolkit")->text.find("cicc"), std::string::npos);
}

TEST(DoctorHostCompiler, RefusesWhatNvccRefuses) {
    DoctorFacts facts = healthy();
    facts.tools.nvcc_host.compiler = {"gcc", "17.1.0", "/usr/bin/gcc", 17};
    EXPECT_EQ(cause_of(examine(facts), Question::build), "build-unsupported-host-compiler");
    set(facts, "NVCC_PREPEND_FLAGS", "-allow-unsupported-compiler");
    EXPECT_EQ(check_named(examine(facts), "nvcc-host-compiler")->health, Health::yellow);
}

TEST(DoctorHostCompiler, WarnsOfAPairThatNoCheckRefuses) {
    DoctorFacts facts = healthy();
    facts.torch.cuda = facts.tools.toolkit.release = "11.5";
    facts.tools.nvcc_host.compiler = {"gcc", "11.4.0", "/usr/bin/gcc-11", 11};
    const Examination examination = examine(facts);
    EXPECT_EQ(check_named(examination, "nvcc-host-compiler")->health, Health::yellow);
    EXPECT_EQ(check_named(examination, "nvcc-host-compiler")->finding->slug,
              "build-incompatible-headers");
}

TEST(DoctorHostCompiler, KnowsTheBoundsThatTorchItselfSets) {
    DoctorFacts facts = healthy();
    facts.torch.gcc_refused_from = {{"13.0", 12}};
    EXPECT_EQ(check_named(examine(facts), "cxx-compiler")->health, Health::red);
    set(facts, "TORCH_DONT_CHECK_COMPILER_ABI", "1");
    EXPECT_EQ(check_named(examine(facts), "cxx-compiler")->health, Health::green);
}

TEST(DoctorHostCompiler, MissesTheCompilerThatIsNotThere) {
    DoctorFacts facts = healthy();
    facts.tools.cxx.tool = {.asked = "c++", .path = "", .runs = false, .said = ""};
    const Examination examination = examine(facts);
    EXPECT_EQ(cause_of(examination, Question::build), "build-missing-compiler");
    EXPECT_NE(check_named(examination, "cxx-compiler")->text.find("c++"), std::string::npos);
}

TEST(DoctorHostCompiler, MindsAWrapperThatTorchPutsBeforeIt) {
    DoctorFacts facts = healthy();
    facts.tools.wrapper = {
        .asked = "ccache", .path = "/usr/bin/ccache", .runs = false, .said = "exit status 1"};
    const Examination examination = examine(facts);
    EXPECT_EQ(cause_of(examination, Question::build), "build-missing-compiler");
    EXPECT_EQ(check_named(examination, "compiler-wrapper")->finding->fixes.front().command,
              "export TORCH_NO_COMPILER_WRAPPER=1");
}

TEST(DoctorHeaders, NamesAllThatAreMissingInOneAnswer) {
    DoctorFacts facts = healthy();
    facts.tools.headers.push_back(wanted("cublas_v2.h", true, ""));
    facts.tools.headers.push_back(wanted("cusolverDn.h", true, ""));
    const Examination examination = examine(facts);
    EXPECT_EQ(cause_of(examination, Question::build), "build-missing-header");
    const Check& headers = *check_named(examination, "headers");
    EXPECT_NE(headers.text.find("cublas_v2.h, cusolverDn.h"), std::string::npos) << headers.text;
    EXPECT_NE(headers.text.find("/opt/cuda has nvcc, but not the development files"),
              std::string::npos);
    EXPECT_FALSE(headers.finding->fixes.empty());
}

TEST(DoctorArchitectures, FollowsTorchThenNvcc) {
    DoctorFacts facts = healthy();
    set(facts, "TORCH_CUDA_ARCH_LIST", "12.9");
    EXPECT_EQ(cause_of(examine(facts), Question::build), "build-unsupported-arch");
    set(facts, "TORCH_CUDA_ARCH_LIST", "Hopper");
    EXPECT_EQ(health_of(examine(facts), Question::build), Health::green);
    set(facts, "TORCH_CUDA_ARCH_LIST", "7.0");
    facts.tools.nvcc.runs = false;
    facts.tools.nvcc.said = "nvcc fatal   : Unsupported gpu architecture 'compute_70'";
    const Examination refused = examine(facts);
    EXPECT_EQ(cause_of(refused, Question::build), "build-unsupported-arch");
}

TEST(DoctorArchitectures, NeedsAGpuOrAList) {
    DoctorFacts facts = healthy();
    facts.environment.erase("TORCH_CUDA_ARCH_LIST");
    facts.run.processes.front().environment.erase("TORCH_CUDA_ARCH_LIST");
    EXPECT_EQ(health_of(examine(facts), Question::build), Health::green);
    facts.machine = Machine{};
    facts.launch.driver = {};
    const Examination examination = examine(facts);
    EXPECT_EQ(health_of(examination, Question::launch), Health::unknown);
    EXPECT_EQ(cause_of(examination, Question::build), "build-unsupported-arch");
}

TEST(DoctorNinja, TellsAbsentFromBroken) {
    DoctorFacts facts = healthy();
    facts.tools.ninja = {.asked = "ninja", .path = "", .runs = false, .said = ""};
    EXPECT_EQ(check_named(examine(facts), "ninja")->finding->evidence["state"], "absent");
    facts.tools.ninja = {.asked = "ninja",
                         .path = "/usr/bin/ninja",
                         .runs = false,
                         .said = "GLIBCXX_3.4.30 not found"};
    const Examination examination = examine(facts);
    EXPECT_EQ(check_named(examination, "ninja")->finding->evidence["state"], "broken");
    EXPECT_EQ(check_named(examination, "ninja")->finding->evidence["error"],
              "GLIBCXX_3.4.30 not found");
}

TEST(DoctorLink, MissesTheNameThatTheLinkerLooksFor) {
    DoctorFacts facts = healthy();
    facts.tools.cudart.clear();
    facts.tools.cudart_soname.clear();
    const Examination examination = examine(facts);
    EXPECT_EQ(cause_of(examination, Question::build), "build-link-failed");
    EXPECT_EQ(check_named(examination, "link")->finding->evidence["library"], "cudart");
}

TEST(DoctorMemory, ComparesTheLimitWithWhatWasMeasured) {
    DoctorFacts facts = healthy();
    facts.memory = MemoryGroup{.path = "/docker/1", .limit = 900'000'000, .oom_kills = 0};
    EXPECT_EQ(cause_of(examine(facts), Question::build), "build-out-of-memory");
    facts.memory->limit = 3'000'000'000;
    EXPECT_EQ(check_named(examine(facts), "memory")->health, Health::yellow);
    EXPECT_EQ(check_named(examine(facts), "memory")->finding->fixes.front().command,
              "export MAX_JOBS=1");
    set(facts, "MAX_JOBS", "1");
    EXPECT_EQ(check_named(examine(facts), "memory")->health, Health::green);
    facts.memory->limit = 0;
    facts.memory_available = 1'000'000'000;  // what is free now is no limit
    EXPECT_EQ(check_named(examine(facts), "memory")->health, Health::yellow);
}

TEST(DoctorDirectory, MustBeWritable) {
    DoctorFacts facts = healthy();
    facts.tools.unwritable = "/home/user";
    EXPECT_EQ(cause_of(examine(facts), Question::build), "build-no-directory");
}

TEST(DoctorLoad, SeesTwoMajorsOfTheRuntimeAhead) {
    DoctorFacts facts = healthy();
    facts.tools.cudart_soname = "libcudart.so.99";  // that no machine has
    const Examination examination = examine(facts);
    EXPECT_EQ(health_of(examination, Question::load), Health::red);
    EXPECT_NE(check_named(examination, "built-runtime")->text.find("libcudart.so.99"),
              std::string::npos);
}

TEST(DoctorLoad, BlamesTheExtensionThatMissesALibrary) {
    DoctorFacts facts = healthy();
    Extension extension;
    extension.path = "/venv/lib/python3.11/site-packages/torchvision/_C.so";
    extension.package = "torchvision 0.24.1";
    extension.trial.ran = true;
    extension.trial.error =
        "libcudart.so.12: cannot open shared object file: No such file or directory";
    facts.extensions = {extension};
    const Examination examination = examine(facts);
    EXPECT_EQ(health_of(examination, Question::load), Health::red);
    EXPECT_NE(check_named(examination, "extension")->text.find("torchvision 0.24.1"),
              std::string::npos);
    EXPECT_EQ(health_of(examination, Question::import), Health::green);
}

TEST(DoctorLoad, LetsTorchBuildAnewWhatAnotherEnvironmentHasCached) {
    DoctorFacts facts = healthy();
    Extension extension;
    extension.path = "/home/user/.cache/torch_extensions/py311_cu130/fused_adam/fused_adam.so";
    extension.cached = true;
    extension.trial.ran = true;
    extension.trial.error = extension.path + ": undefined symbol: _ZN3c104cuda9allocatorE";
    facts.extensions = {extension};
    EXPECT_EQ(health_of(examine(facts), Question::load), Health::yellow);
    facts.extensions.front().built_by_this_torch = true;
    EXPECT_EQ(health_of(examine(facts), Question::load), Health::red);
}

TEST(DoctorImport, IsWhatTheRestHangsOn) {
    DoctorFacts facts = healthy();
    facts.import_trial.error =
        "libcudart.so.13: cannot open shared object file: No such file or directory";
    facts.import_trial.problems = 1;
    const Examination examination = examine(facts);
    for (const Question question :
         {Question::import, Question::build, Question::load, Question::launch}) {
        EXPECT_EQ(health_of(examination, question), Health::red) << name_of(question);
    }
}

TEST(DoctorImport, NamesThePackageThatIsMissing) {
    DoctorFacts facts = healthy();
    facts.torch.missing_modules = {"typing_extensions"};
    EXPECT_EQ(cause_of(examine(facts), Question::import), "package-missing");
    facts.torch = TorchInstall{};
    const Examination without = examine(facts);
    EXPECT_EQ(cause_of(without, Question::import), "package-missing");
    EXPECT_EQ(health_of(without, Question::build), Health::green) << "nvcc alone is judged";
}

TEST(DoctorImport, TellsATorchOfAnotherPython) {
    DoctorFacts facts = healthy();
    facts.torch.extension.clear();
    facts.torch.extension_of_another_python =
        facts.torch.directory + "/_C.cpython-39-x86_64-linux-gnu.so";
    const Examination examination = examine(facts);
    EXPECT_EQ(health_of(examination, Question::import), Health::red);
    EXPECT_NE(check_named(examination, "torch")->text.find("cpython-39"), std::string::npos);
}

TEST(DoctorImport, KnowsATorchWithoutCuda) {
    DoctorFacts facts = healthy();
    facts.torch.version = "2.13.0+cpu";
    facts.torch.cuda.clear();
    const Examination examination = examine(facts);
    EXPECT_EQ(health_of(examination, Question::import), Health::green);
    EXPECT_EQ(cause_of(examination, Question::build), "torch-without-cuda");
    EXPECT_EQ(cause_of(examination, Question::launch), "torch-without-cuda");
}

TEST(DoctorImport, SaysWhatAPythonSaysThatDoesNotRun) {
    DoctorFacts facts = healthy();
    facts.python.problem = "error while loading shared libraries: libpython3.11.so.1.0";
    facts.torch = TorchInstall{};
    const Examination examination = examine(facts);
    EXPECT_EQ(health_of(examination, Question::import), Health::red);
    EXPECT_NE(check_named(examination, "python")->text.find("libpython3.11"), std::string::npos);
}

TEST(DoctorImport, MindsTwoWheelsThatWroteOneFile) {
    DoctorFacts facts = healthy();
    facts.shared_paths = {{.path = "/venv/nvidia/nccl/lib/libnccl.so.2",
                           .packages = "nvidia-nccl-cu12 2.18.3 and nvidia-nccl-cu13 2.29.7",
                           .wanted = "nvidia-nccl-cu13==2.29.7"}};
    const Examination examination = examine(facts);
    EXPECT_EQ(health_of(examination, Question::import), Health::yellow);
    EXPECT_NE(check_named(examination, "mixed-wheels")
                  ->finding->fixes.front()
                  .command.find("nvidia-nccl-cu13==2.29.7"),
              std::string::npos);
}

TEST(DoctorLaunch, SaysNothingOfAGpuThatIsElsewhere) {
    DoctorFacts facts = healthy();
    facts.machine = Machine{};
    facts.launch.driver = {};
    facts.launch.driver_release = facts.launch.module_release = "";
    const Examination examination = examine(facts);
    EXPECT_EQ(health_of(examination, Question::launch), Health::unknown);
    EXPECT_FALSE(examination.any_red());
}

TEST(DoctorLaunch, MissesTheDriverWhereThereIsACard) {
    DoctorFacts facts = healthy();
    facts.launch.driver.path.clear();
    facts.machine.device_nodes.clear();
    EXPECT_EQ(cause_of(examine(facts), Question::launch), "cuda-no-driver");
    facts.machine.driver_module.clear();
    facts.machine.container = "docker";
    EXPECT_EQ(cause_of(examine(facts), Question::launch), "cuda-no-driver");
}

TEST(DoctorLaunch, ComparesTheDriverWithTheRuntimesMinimum) {
    DoctorFacts facts = healthy();
    facts.launch.driver_release = facts.launch.module_release = "550.54.14";
    EXPECT_EQ(cause_of(examine(facts), Question::launch), "cuda-driver-too-old");
    facts.torch.cuda = "12.8";  // releases of one major go together
    facts.tools.toolkit.release = "12.8";
    EXPECT_EQ(health_of(examine(facts), Question::launch), Health::green);
}

TEST(DoctorLaunch, SeesDevicesThatAreHiddenRevokedOrGone) {
    DoctorFacts facts = healthy();
    set(facts, "CUDA_VISIBLE_DEVICES", "-1");
    EXPECT_EQ(cause_of(examine(facts), Question::launch), "cuda-device-unavailable");
    facts = healthy();
    facts.machine.refused_nodes = {{"/dev/nvidiactl", EPERM}};
    EXPECT_EQ(cause_of(examine(facts), Question::launch), "container-device-revoked");
    facts = healthy();
    facts.machine.device_nodes.clear();
    EXPECT_EQ(health_of(examine(facts), Question::launch), Health::red);
    facts = healthy();
    facts.launch.module_release = "575.51.03";
    EXPECT_EQ(cause_of(examine(facts), Question::launch), "cuda-device-unavailable");
}

TEST(DoctorLaunch, MindsASmallShm) {
    DoctorFacts facts = healthy();
    facts.machine.shared_memory.size = 64 << 20;
    const Examination examination = examine(facts);
    EXPECT_EQ(health_of(examination, Question::launch), Health::yellow);
    EXPECT_EQ(check_named(examination, "shared-memory")->finding->slug, "nccl-shm-too-small");
}

}  // namespace
}  // namespace cudiag
