// A torch as its files tell it: version.py, cpp_extension.py, __init__.py and the modules beside
// it.
#pragma once

#include "diagnose/doctor/facts.h"

namespace cudiag {

// The torch that this Python would import; without `directory` if it finds none.
TorchInstall torch_install(const PythonEnvironment& python);

// The architectures that torch's build would take from TORCH_CUDA_ARCH_LIST, its names expanded as
// _get_cuda_arch_flags() of cpp_extension.py does it: "Hopper" -> {"9.0+PTX"}.
std::vector<std::string> architectures_of_list(const TorchInstall& torch, std::string list);

}  // namespace cudiag
