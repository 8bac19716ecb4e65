"""A libcuda.so.1 without a GPU, with real exported names and signatures: those of shim/cuda/driver.def, and what cudart asks for.

    build(bed)                        libcuda.so.1 in the bed's root
    environment(fails={"cuInit": 100})      which of its functions give an error

It has a GPU of a kind: launches and marks (cuStreamWriteValue32) wait in their streams and are worked off in turn, some behind the host, until
a kernel named FAKE_DRIVER_FAULTY comes: that one never ends, and every call gives FAKE_DRIVER_FAULT (700) from then on; with FAKE_DRIVER_HANGS=1
none tells it, the other streams go on, and a wait for it never returns. FAKE_DRIVER_SLOW="cuLaunchKernel=150": how long a call takes, in ms;
FAKE_DRIVER_CAPABILITY=90: of its GPU. FAKE_DRIVER_GONE=709: what launches give once a context was destroyed (else nothing happens).
FAKE_DRIVER_REFUSES_FILES=1: memory of a recording is not registered.

Each function says on stdout that it was called, and with what (FAKE_DRIVER_QUIET=1: not). For measuring, FAKE_DRIVER_BARE=1 has it do nothing at all.
cuGetProcAddress answers as the driver's does: with the newest form that the version asked for knows, so that the name asked for does not tell the signature.
It tests our mechanics; what CUDA does, it does not tell.
"""
import re

from twin import TESTS

DEFINITION = TESTS.parent / "shim" / "cuda" / "driver.def"
LAUNCHES = {"cuLaunchKernel": (0, 8), "cuLaunchCooperativeKernel": (0, 8), "cuGraphLaunch": (0, 1)}  # function and stream
RESOLVERS = ("cuGetProcAddress", "cuGetProcAddress_v2")


def rows():
    """[(name, [types of its parameters])] of driver.def."""
    found = re.findall(r"^CUDIAG_DRIVER_CALL\((\w+),\s*\(([^)]*)\),\s*\w+,\s*\w+\)", DEFINITION.read_text(), re.M)
    return [(name, [t.strip() for t in " ".join(types.split()).split(",")] if types else []) for name, types in found]


HEAD = r"""
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *fails, *slow;
static int quiet, bare;

__attribute__((constructor)) static void read_environment(void) {
    fails = getenv("FAKE_DRIVER_FAILS");
    slow = getenv("FAKE_DRIVER_SLOW");
    quiet = getenv("FAKE_DRIVER_QUIET") != NULL;
    bare = getenv("FAKE_DRIVER_BARE") != NULL;
}

/* "cuInit=100 cuMemAlloc_v2=2" */
static int number_for(const char* list, const char* name) {
    const size_t length = strlen(name);
    for (const char* at = list; at != NULL && (at = strstr(at, name)) != NULL; at += length) {
        if ((at == list || at[-1] == ' ') && at[length] == '=') return atoi(at + length + 1);
    }
    return 0;
}

static int result_of(const char* name) { return number_for(fails, name); }

static int called(const char* name, int count, ...) {
    if (slow != NULL) usleep(1000 * number_for(slow, name));
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

/* --- the GPU --- */
enum { STREAMS = 64, ITEMS = 4096, LAG = 40 };
struct item { volatile unsigned* address; unsigned value; const char* kernel; };
static struct stream { unsigned long long handle; struct item items[ITEMS]; unsigned first, count, used; } streams[STREAMS];
static int dead, gone;
static unsigned waiting, handles;
static const char* names[4096];

static struct stream* stream_of(unsigned long long handle) {
    struct stream* stream = streams;
    while (stream->used && stream->handle != handle) ++stream;
    stream->handle = handle;
    stream->used = 1;
    return stream;
}

static int work(unsigned until) {
    static unsigned turn;
    const char* faulty = getenv("FAKE_DRIVER_FAULTY");
    const int hangs = getenv("FAKE_DRIVER_HANGS") != NULL;
    for (unsigned idle = 0; !dead && waiting > until; ++turn) {
        struct stream* stream = &streams[turn % STREAMS];
        while (idle > STREAMS && until == 0) pause();
        if (idle > STREAMS) break;
        ++idle;
        if (stream->first == stream->count) continue;
        struct item* item = &stream->items[stream->first % ITEMS];
        if (item->kernel != NULL && faulty != NULL && strcmp(item->kernel, faulty) == 0) {
            if (hangs) continue;
            dead = getenv("FAKE_DRIVER_FAULT") != NULL ? atoi(getenv("FAKE_DRIVER_FAULT")) : 700;
            break;
        }
        if (item->address != NULL) *item->address = item->value;
        ++stream->first;
        --waiting;
        idle = 0;
    }
    return dead;
}

static int queue(unsigned long long stream, struct item item) {
    struct stream* into = stream_of(stream);
    if (gone) return gone;
    if (work(LAG) == 0) {
        into->items[into->count++ % ITEMS] = item;
        ++waiting;
    }
    return dead;
}

static const char* kernel_of(unsigned long long function) {
    const unsigned long long number = (function - 0x5000000) / 16;
    return number < sizeof names / sizeof *names ? names[number] : NULL;
}

/* What a call does beyond being told; its result. */
static int effect(const char* name, unsigned long long a, unsigned long long b, unsigned long long c) {
    if (dead) return dead;
    if ((strncmp(name, "cuCtxDestroy", 12) == 0 || strncmp(name, "cuDevicePrimaryCtxReset", 23) == 0) && getenv("FAKE_DRIVER_GONE") != NULL) {
        gone = atoi(getenv("FAKE_DRIVER_GONE"));
    } else if (strcmp(name, "cuModuleGetFunction") == 0 || strcmp(name, "cuLibraryGetKernel") == 0) {
        names[++handles] = strdup((const char*)(size_t)c);
        *(unsigned long long*)(size_t)a = 0x5000000 + 16 * handles;
    } else if (strcmp(name, "cuKernelGetFunction") == 0) {
        names[handles + 1] = kernel_of(b);
        ++handles;
        *(unsigned long long*)(size_t)a = 0x5000000 + 16 * handles;
    } else if (strncmp(name, "cuStreamCreate", 14) == 0) {
        *(unsigned long long*)(size_t)a = 0x6000000 + 16 * ++handles;
    } else if (strcmp(name, "cuCtxSynchronize") == 0 || strcmp(name, "cuCtxSynchronize_v2") == 0 || strcmp(name, "cuStreamSynchronize") == 0) {
        return work(0);
    }
    return 0;
}

/* As a driver does with files of most file systems. */
static int lies_in_a_recording(void* memory) {
    char line[4200];
    int found = 0;
    FILE* maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long long begin, end;
        found |= sscanf(line, "%llx-%llx", &begin, &end) == 2 && begin <= (size_t)memory && (size_t)memory < end && strstr(line, ".rec") != NULL;
    }
    if (maps != NULL) fclose(maps);
    return found;
}
int cuMemHostRegister_v2(void* memory, size_t bytes, unsigned flags) {
    return getenv("FAKE_DRIVER_REFUSES_FILES") != NULL && lies_in_a_recording(memory) ? 2 : result_of("cuMemHostRegister_v2");
}
int cuMemHostGetDevicePointer_v2(unsigned long long* device, void* memory, unsigned flags) { *device = (size_t)memory; return 0; }
int cuStreamIsCapturing(void* stream, int* status) { *status = getenv("FAKE_DRIVER_CAPTURES") != NULL; return 0; }
int cuCtxGetDevice(int* device) { *device = 0; return 0; }
int cuDeviceGetName(char* name, int size, int device) { snprintf(name, size, "Double 9000"); return 0; }
int cuMemGetInfo_v2(size_t* free, size_t* total) { *free = 1 << 20; *total = 1 << 30; return 0; }
int cuFuncGetAttribute(int* value, int attribute, void* function) { *value = 100 + attribute; return kernel_of((size_t)function) == NULL ? abort(), 1 : 0; }
int cuGraphGetNodes(void* graph, void** nodes, size_t* count) {
    for (size_t i = 0; nodes != NULL && i < *count; ++i) nodes[i] = (void*)(i + 1);
    *count = 5;
    return 0;
}
int cuGraphNodeGetType(void* node, int* type) { *type = (size_t)node == 1 ? 1 : 0; return 0; }   /* a copy, and kernels */
int cuGraphChildGraphNodeGetGraph(void* node, void** graph) { return 1; }
static void (*listener)(void*, int, char*, size_t);
int cuLogsRegisterCallback(void (*callback)(void*, int, char*, size_t), void* data, void** handle) { listener = callback; return 0; }
static int told(const char* name, int result) {
    char line[128];
    const int length = snprintf(line, sizeof line, "%s refused it, says the log", name);
    if (result != 0 && listener != NULL) listener(NULL, 0, line, (size_t)length);
    return result;
}

int cuStreamWriteValue32_v2(void* stream, unsigned long long address, unsigned value, unsigned flags) {
    const int refused = result_of("cuStreamWriteValue32_v2");
    const struct item item = {(volatile unsigned*)(size_t)address, value, NULL};
    return told("cuStreamWriteValue32_v2", refused != 0 ? refused : queue((unsigned long long)(size_t)stream, item));
}

/* Another function than the one that is exported under this name. */
static int another(void* context) { return called("another", 1, (unsigned long long)(size_t)context); }
static int unsupported(void) { return 801; }

/* What cudart asks for beyond calls; none of ours. */
int cuGetExportTable(const void** table, const void* id) { *table = NULL; return 500; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
    const int capability = getenv("FAKE_DRIVER_CAPABILITY") == NULL ? 0 : atoi(getenv("FAKE_DRIVER_CAPABILITY"));
    *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : 0;
    return result_of("cuDeviceGetAttribute");
}
int cuCtxGetCurrent(void** context) { *context = (void*)0x7000000; return result_of("cuCtxGetCurrent"); }
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
        numbers = [f"(unsigned long long){'(size_t)' if '*' in t else ''}a{i}" for i, t in enumerate(types)]
        after = f'effect("{name}", {", ".join((numbers + ["0"] * 3)[:3])})'
        if name in LAUNCHES:
            function, stream = LAUNCHES[name]
            after = f"queue({numbers[stream]}, (struct item){{NULL, 0, kernel_of({numbers[function]})}})"
        text.append(f'int {name}({parameters}) {{ if (bare) return 0; const int result = called("{name}", {len(types)}{arguments});'
                    f' return told("{name}", result != 0 ? result : {after}); }}')
    exported = [name for name, _ in kept] + ["cuGetErrorString", "cuGetExportTable", "cuDeviceGetAttribute", "cuCtxGetCurrent"]
    text += ["int cuGetProcAddress(const char*, void**, int, unsigned long long);",
             "int cuGetProcAddress_v2(const char*, void**, int, unsigned long long, int*);",
             "static const struct { const char* name; void* address; } table[] = {",
             *(f'    {{"{name}", (void*){name}}},' for name in exported), "};", TAIL]
    return "\n".join(text)


def build(bed, output="libcuda.so.1", **how):
    code = bed.root / f"{output.replace('/', '-')}.c"
    code.write_text(source(**how))
    return bed.build(output, code, "-shared", "-Wl,-soname,libcuda.so.1")


def environment(fails=None, **more):
    return {**({"FAKE_DRIVER_FAILS": " ".join(f"{k}={v}" for k, v in fails.items())} if fails else {}), **more}
