#include "cli/commands.h"

namespace cudiag {
int libs_command(const LibsOptions&) {
    return kCouldNotRun;
}
}  // namespace cudiag
