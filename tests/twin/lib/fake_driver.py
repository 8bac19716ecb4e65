"""A libcuda.so.1 without a GPU, with real exported names and signatures: those of shim/cuda/driver.def, and what cudart asks for.

    build(bed)                        libcuda.so.1 in the bed's root
    environment(fails={"cuInit": 100})      which of its functions give an error

Each function says on stdout that it was called, and with what (FAKE_DRIVER_QUIET=1: not). cuGetProcAddress answers as the driver's
does: with the newest form that the version asked for knows, so that the name asked for does not tell the signature.
It tests our mechanics; what CUDA does, it does not tell.
"""
import re

from twin import TESTS

DEFINITION = TESTS.parent / "shim" / "cuda" / "driver.def"
RESOLVERS = ("cuGetProcAddress", "cuGetProcAddress_v2")


def rows():
    """[(name, [types of its parameters])] of driver.def."""
    found = re.findall(r"^CUDIAG_DRIVER_CALL\((\w+),\s*\(([^)]*)\),\s*\w+\)", DEFINITION.read_text(), re.M)
    return [(name, [t.strip() for t in " ".join(types.split()).split(",")] if types else []) for name, types in found]


HEAD = r"""
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* fails;
static int quiet;

__attribute__((constructor)) static void read_environment(void) {
    fails = getenv("FAKE_DRIVER_FAILS");
    quiet = getenv("FAKE_DRIVER_QUIET") != NULL;
}

/* "cuInit=100 cuMemAlloc_v2=2" */
static int result_of(const char* name) {
    const size_t length = strlen(name);
    for (const char* at = fails; at != NULL && (at = strstr(at, name)) != NULL; at += length) {
        if ((at == fails || at[-1] == ' ') && at[length] == '=') return atoi(at + length + 1);
    }
    return 0;
}

static int called(const char* name, int count, ...) {
    if (!quiet) {
        va_list arguments;
        va_start(arguments, count);
        printf("    %s(", name);
        for (int i = 0; i < count; ++i) printf("%s%llu", i != 0 ? ", " : "", va_arg(arguments, unsigned long long));
        puts(")");
        va_end(arguments);
    }
    return fails == NULL ? 0 : result_of(name);
}

/* Asked by the shim as well: says nothing. */
int cuGetErrorString(int error, const char** text) {
    static char words[64];
    if (error < 0 || error > 999) return 1;
    snprintf(words, sizeof words, "words for %d", error);
    *text = words;
    return 0;
}

int cuDriverGetVersion(int* version) {
    const char* set = getenv("FAKE_DRIVER_VERSION");
    *version = set == NULL ? VERSION : atoi(set);
    return result_of("cuDriverGetVersion");
}

/* Another function than the one that is exported under this name. */
static int another(void* context) { return called("another", 1, (unsigned long long)(size_t)context); }
static int unsupported(void) { return 801; }

/* What cudart asks for beyond calls; none of ours. */
int cuGetExportTable(const void** table, const void* id) { *table = NULL; return 500; }
int cuDeviceGetAttribute(int* value, int attribute, int device) { *value = 0; return result_of("cuDeviceGetAttribute"); }
int cuCtxGetCurrent(void** context) { *context = NULL; return result_of("cuCtxGetCurrent"); }
"""

TAIL = r"""
static int resolve(const char* name, void** address, int version, unsigned long long flags) {
    char with_suffix[128];
    if (name == NULL || address == NULL) return 1;
    *address = NULL;
    if (getenv("FAKE_DRIVER_ANOTHER") != NULL && strcmp(name, getenv("FAKE_DRIVER_ANOTHER")) == 0) {
        *address = (void*)another;
        return 0;
    }
    const char* const suffixes[] = {version >= 13000 ? "_v4" : version >= 11040 ? "_v3" : "", "_v2", ""};
    const int newest_needs_13 = strcmp(name, "cuCtxSynchronize") == 0 && version < 13000;
    const int newest_needs_12 = strcmp(name, "cuGetProcAddress") == 0 && version < 12000;
    for (int per_thread = flags & 2 ? 1 : 0; per_thread >= 0; --per_thread) {
        for (int i = newest_needs_13 || newest_needs_12 ? 2 : 0; i < 3; ++i) {
            const char* const threads[] = {"_ptsz", "_ptds"};
            for (int j = 0; j < (per_thread ? 2 : 1); ++j) {
                snprintf(with_suffix, sizeof with_suffix, "%s%s%s", name, suffixes[i], per_thread ? threads[j] : "");
                for (size_t k = 0; k < sizeof table / sizeof *table; ++k) {
                    if (strcmp(table[k].name, with_suffix) == 0) {
                        *address = table[k].address;
                        return 0;
                    }
                }
            }
        }
    }
    if (getenv("FAKE_DRIVER_HAS_ALL") != NULL) {    /* for a cudart, which wants hundreds */
        *address = (void*)unsupported;
        return 0;
    }
    return 500;
}

int cuGetProcAddress(const char* name, void** address, int version, unsigned long long flags) {
    return resolve(name, address, version, flags);
}

int cuGetProcAddress_v2(const char* name, void** address, int version, unsigned long long flags, int* status) {
    const int result = resolve(name, address, version, flags);
    if (status != NULL) *status = result == 0 ? 0 : 1;
    return result == 500 ? 0 : result;
}
"""


def source(without=(), version=13000):
    """The fake in C. `without`: names that it lacks, as an older driver does."""
    kept = [(name, types) for name, types in rows() if name not in without]
    text = [f"#define VERSION {version}", HEAD]
    for name, types in kept:
        if name in RESOLVERS or name == "cuDriverGetVersion":
            continue
        parameters = ", ".join(f"{t} a{i}" for i, t in enumerate(types)) or "void"
        arguments = "".join(f", (unsigned long long)a{i}" for i in range(len(types)))
        text.append(f'int {name}({parameters}) {{ return called("{name}", {len(types)}{arguments}); }}')
    names = [name for name, _ in kept] + ["cuGetErrorString", "cuGetExportTable", "cuDeviceGetAttribute", "cuCtxGetCurrent"]
    text += ["int cuGetProcAddress(const char*, void**, int, unsigned long long);",
             "int cuGetProcAddress_v2(const char*, void**, int, unsigned long long, int*);",
             "static const struct { const char* name; void* address; } table[] = {",
             *(f'    {{"{name}", (void*){name}}},' for name in names), "};", TAIL]
    return "\n".join(text)


def build(bed, output="libcuda.so.1", **how):
    code = bed.root / f"{output.replace('/', '-')}.c"
    code.write_text(source(**how))
    return bed.build(output, code, "-shared", "-Wl,-soname,libcuda.so.1")


def environment(fails=None, **more):
    return {**({"FAKE_DRIVER_FAILS": " ".join(f"{k}={v}" for k, v in fails.items())} if fails else {}), **more}
