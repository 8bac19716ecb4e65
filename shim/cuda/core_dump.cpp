#include "shim/cuda/core_dump.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/run_directory.h"
#include "shim/session.h"
#include "shim/start_environment.h"
#include "shim/text.h"

namespace cudiag {
namespace {

constexpr char kEnable[] = "CUDA_ENABLE_COREDUMP_ON_EXCEPTION";
bool asked = false;

// Without memory and without code that is not relocated: 0.3 MB instead of 17.
constexpr char kFlags[] =
    "skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory,"
    "skip_constbank_memory";

}  // namespace

void ask_for_core_dumps() {
    const char* wanted = start_variable("CUDIAG_COREDUMP");
    if (wanted == nullptr || strcmp(wanted, "1") != 0 || getenv(kEnable) != nullptr) {
        return;
    }
    char path[4096];
    Text text{path, sizeof path};
    text.add(run_directory()).add("/%p.gpucore");
    // A '%' of the path itself would be taken for more of the driver's own marks.
    if (text.cut() || strchr(run_directory(), '%') != nullptr) {
        return;
    }
    asked = setenv("CUDA_COREDUMP_FILE", path, 1) == 0 &&
            setenv("CUDA_COREDUMP_GENERATION_FLAGS", kFlags, 1) == 0 &&
            setenv(kEnable, "1", 1) == 0;
}

void note_core_dump() {
    char path[4096];
    Text text{path, sizeof path};
    text.add(run_directory()).add("/").add(static_cast<uint64_t>(getpid())).add(".gpucore");
    if (asked && !text.cut()) {
        const FieldValue fields[] = {FieldValue::of(Field::path, path)};
        (void)note(EntryKind::cuda_core, fields, 1);
    }
}

}  // namespace cudiag
