// Facts of an environment in which all is well, made by hand: each test breaks one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "diagnose/doctor/load_trial.h"
#include "diagnose/doctor/rules.h"

namespace cudiag::testing {

inline WantedHeader wanted(const std::string& header, bool by_nvcc, const std::string& found) {
    return {.header = header, .included_by = "", .by_nvcc = by_nvcc, .found = found};
}

inline DoctorFacts healthy() {
    DoctorFacts facts;
    facts.environment = {{"PATH", "/nowhere/bin"}, {"TORCH_CUDA_ARCH_LIST", "9.0"}};
    facts.python = {.path = "/venv/bin/python",
                    .chosen_by = "VIRTUAL_ENV",
                    .problem = "",
                    .version = "3.11.7",
                    .prefix = "/venv",
                    .executable = "/usr/bin/python3.11",
                    .include_directory = "/usr/include/python3.11",
                    .extension_suffixes = {".cpython-311-x86_64-linux-gnu.so", ".so"},
                    .packages = {"/venv/lib/python3.11/site-packages"}};
    facts.run.processes.push_back(process_to_be(facts.python, facts.environment));
    facts.torch.directory = "/venv/lib/python3.11/site-packages/torch";
    facts.torch.version = "2.13.0+cu130";
    facts.torch.cuda = "13.0";
    facts.torch.extension = facts.torch.directory + "/_C.cpython-311-x86_64-linux-gnu.so";
    facts.torch.standard = "c++20";
    facts.torch.architectures = {"7.0", "8.0", "9.0", "9.0a", "12.0"};
    facts.torch.named_architectures = {{"Hopper", "9.0+PTX"}};
    facts.torch.gcc_refused_from = {{"12.4", 14}, {"13.0", 16}};
    facts.import_trial.ran = true;
    facts.import_trial.modules.resize(2);
    facts.import_trial.modules[0].path = facts.python.executable;
    facts.import_trial.modules[1].path = "/venv/nvidia/cu13/lib/libcudart.so.13";
    BuildTools& tools = facts.tools;
    tools.home = {.home = "/opt/cuda", .rule = "CUDA_HOME"};
    tools.toolkit = {.home = "/opt/cuda",
                     .nvcc = "/opt/cuda/bin/nvcc",
                     .release = "13.0",
                     .told_by = "/opt/cuda/bin/nvcc"};
    tools.nvcc = {
        .asked = "/opt/cuda/bin/nvcc", .path = "/opt/cuda/bin/nvcc", .runs = true, .said = ""};
    tools.nvcc_host.tool = {.asked = "gcc", .path = "/usr/bin/gcc", .runs = true, .said = ""};
    tools.nvcc_host.compiler = {"gcc", "12.2.0", "/usr/bin/gcc", 12};
    tools.nvcc_host.include_directories = {"/opt/cuda/include"};
    tools.cxx = tools.nvcc_host;
    tools.cxx.tool = {.asked = "c++", .path = "/usr/bin/c++", .runs = true, .said = ""};
    tools.ninja = {.asked = "ninja", .path = "/usr/bin/ninja", .runs = true, .said = ""};
    tools.headers = {wanted("cusparse.h", true, "/opt/cuda/include/cusparse.h"),
                     wanted("Python.h", false, "/usr/include/python3.11/Python.h")};
    tools.link_directories = {"/opt/cuda/lib64"};
    tools.cudart = "/opt/cuda/lib64/libcudart.so";
    tools.cudart_soname = "libcudart.so.13";
    tools.extensions_root = "/home/user/.cache/torch_extensions/py311_cu130";
    facts.launch.driver.path = "/usr/lib/x86_64-linux-gnu/libcuda.so.1";
    facts.launch.driver_release = facts.launch.module_release = "580.65.06";
    facts.launch.runtime = "/venv/nvidia/cu13/lib/libcudart.so.13";
    facts.machine.device_nodes = {"/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl"};
    facts.machine.driver_module = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06";
    facts.machine.nvidia_pci = true;
    facts.machine.shared_memory = {
        .known = true, .size = 8'000'000'000, .free = 8'000'000'000, .nccl = {}};
    facts.memory_available = 64'000'000'000;
    facts.processors = 8;
    return facts;
}

// Sets a variable as the user would have, for the facts and for the process to be.
inline void set(DoctorFacts& facts, const std::string& name, const std::string& value) {
    facts.environment[name] = value;
    facts.run.processes.front().environment[name] = value;
}

inline Health health_of(const Examination& examination, Question question) {
    for (const Answer& answer : examination.answers) {
        if (answer.question == question) {
            return answer.health;
        }
    }
    return Health::unknown;
}

// The worst check of that name; nullptr if there is none.
inline const Check* check_named(const Examination& examination, const std::string& name) {
    const Check* found = nullptr;
    for (const Check& check : examination.checks) {
        if (check.name == name && (found == nullptr || check.health == Health::red)) {
            found = &check;
        }
    }
    return found;
}

// Slug of the first finding of a red check of the question; "" if there is none.
inline std::string cause_of(const Examination& examination, Question question) {
    for (const Check& check : examination.checks) {
        if (check.question == question && check.health == Health::red && check.finding) {
            return check.finding->slug;
        }
    }
    return {};
}

}  // namespace cudiag::testing
