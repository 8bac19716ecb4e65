#include "shim/start_environment.h"

#include <string.h>

namespace cudiag {
namespace {

// Uses of a variable, bits of a set.
constexpr unsigned char kRecord = 1;
constexpr unsigned char kPass = 2;

struct Name {
    const char* text;  // a whole name, or a prefix when it ends in '*'
    unsigned char use;
};

// The only list: what is recorded of a user's environment, and what the command is started with.
constexpr Name kNames[] = {{"LD_*", kRecord},
                           {"CUDIAG", kRecord | kPass},
                           {"CUDIAG_*", kRecord | kPass},
                           {"CUDA*", kRecord},
                           {"NCCL_*", kRecord},
                           {"NV_*", kRecord},
                           {"NVCC_*", kRecord},
                           {"NVIDIA_*", kRecord},
                           {"TORCH_*", kRecord},
                           {"PYTORCH_*", kRecord},
                           {"DS_*", kRecord},
                           {"OMP_NUM_THREADS", kRecord},
                           {"MAX_JOBS", kRecord},
                           {"GLIBC_TUNABLES", kRecord},
                           {"PATH", kRecord | kPass},
                           {"PYTHONPATH", kRecord},
                           {"PYTHONHOME", kRecord},
                           {"VIRTUAL_ENV", kRecord | kPass},
                           {"CONDA_PREFIX", kRecord | kPass},
                           {"CC", kRecord},
                           {"CXX", kRecord},
                           {"CPATH", kRecord},
                           {"C_INCLUDE_PATH", kRecord},
                           {"CPLUS_INCLUDE_PATH", kRecord},
                           {"LIBRARY_PATH", kRecord},
                           {"RANK", kRecord},
                           {"LOCAL_RANK", kRecord},
                           {"WORLD_SIZE", kRecord},
                           {"LOCAL_WORLD_SIZE", kRecord},
                           {"MASTER_ADDR", kRecord},
                           {"SLURM_PROCID", kRecord},
                           {"HOME", kRecord | kPass},
                           {"USER", kPass},
                           {"XDG_STATE_HOME", kPass},
                           {"TMPDIR", kPass},
                           {"TERM", kPass},
                           {"COLUMNS", kPass},
                           {"LANG", kPass},
                           {"LC_ALL", kPass},
                           {"LC_CTYPE", kPass},
                           {"LC_MESSAGES", kPass},
                           {"TZ", kPass},
                           {"NO_COLOR", kPass}};

// Names under a wanted prefix that are no less secret for it.
constexpr const char* kSecret[] = {"TOKEN", "KEY", "SECRET", "PASSWORD", "CREDENTIAL"};

struct Remembered {
    const char* variable;  // "NAME=VALUE"
    size_t name_length;
    unsigned char use;
};

constexpr size_t kMost = 128;
Remembered remembered[kMost];
size_t count = 0;
// Pages of it that nobody needs are never touched.
char copies[32768];
size_t copied = 0;

bool matches(const Name& name, const char* variable, size_t length) {
    const size_t wanted = strlen(name.text);
    if (name.text[wanted - 1] == '*') {
        return length >= wanted - 1 && memcmp(name.text, variable, wanted - 1) == 0;
    }
    return length == wanted && memcmp(name.text, variable, wanted) == 0;
}

// The variable itself where the copies are full: better a value that may change than none.
const char* copy_of(const char* variable) {
    const size_t size = strlen(variable) + 1;
    if (size > sizeof copies - copied) {
        return variable;
    }
    char* copy = copies + copied;
    copied += size;
    memcpy(copy, variable, size);
    return copy;
}

bool is_secret(const char* variable, size_t length) {
    for (const char* word : kSecret) {
        const size_t size = strlen(word);
        for (size_t at = 0; at + size <= length; ++at) {
            if (memcmp(variable + at, word, size) == 0) {
                return true;
            }
        }
    }
    return false;
}

}  // namespace

void remember_environment(char** environment) {
    for (char** at = environment; at != nullptr && *at != nullptr && count < kMost; ++at) {
        const char* equals = strchr(*at, '=');
        if (equals == nullptr) {
            continue;
        }
        const auto length = static_cast<size_t>(equals - *at);
        unsigned char use = 0;
        for (const Name& name : kNames) {
            if (matches(name, *at, length)) {
                use = static_cast<unsigned char>(use | name.use);
            }
        }
        if (use != 0 && !is_secret(*at, length)) {
            remembered[count++] = {copy_of(*at), length, use};
        }
    }
}

const char* start_variable(const char* name) {
    const size_t length = strlen(name);
    for (size_t i = 0; i < count; ++i) {
        if (remembered[i].name_length == length &&
            memcmp(remembered[i].variable, name, length) == 0) {
            return remembered[i].variable + length + 1;
        }
    }
    return nullptr;
}

void for_each_recorded(void (*each)(const char*, size_t, const char*, void*), void* context) {
    for (size_t i = 0; i < count; ++i) {
        if ((remembered[i].use & kRecord) != 0) {
            each(remembered[i].variable, remembered[i].name_length,
                 remembered[i].variable + remembered[i].name_length + 1, context);
        }
    }
}

void command_environment(const char** to, size_t most) {
    size_t used = 0;
    for (size_t i = 0; i < count && used + 1 < most; ++i) {
        if ((remembered[i].use & kPass) != 0) {
            to[used++] = remembered[i].variable;
        }
    }
    to[used] = nullptr;
}

}  // namespace cudiag
