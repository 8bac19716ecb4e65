// The Python that is asked about: which one, and where it looks for packages.
#pragma once

#include "diagnose/doctor/facts.h"

namespace cudiag {

// `asked`, or the Python that the environment leads to: that of VIRTUAL_ENV, of CONDA_PREFIX, else
// python3 or python of PATH. `path` is "" if there is none. Starts it once, with -I -S: site and
// the .pth files of packages do not run, nor does any of their code.
PythonEnvironment python_environment(const std::string& asked, const Variables& environment);

// The file or directory that `import name` would take; "" if there is none.
std::string module_at(const PythonEnvironment& python, const std::string& name);

}  // namespace cudiag
