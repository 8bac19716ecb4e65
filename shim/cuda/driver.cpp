#include "shim/cuda/driver.h"

#include <link.h>
#include <string.h>

#include "record/keep_errno.h"
#include "record/writer.h"
#include "shim/bindings.h"
#include "shim/cuda/asked_driver.h"
#include "shim/cuda/failed_calls.h"
#include "shim/cuda/kernels.h"
#include "shim/cuda/launches.h"
#include "shim/cuda/progress.h"
#include "shim/cuda/slow_code.h"
#include "shim/loaded_object.h"
#include "shim/modules.h"
#include "shim/profile.h"
#include "shim/python.h"

namespace cudiag {
namespace {

enum Entry : size_t {

#define CUDIAG_DRIVER_CALL(name, parameters, errors, role) entry_##name,
#include "shim/cuda/driver.def"
#undef CUDIAG_DRIVER_CALL
    entries
};

constexpr DriverCall kCalls[entries] = {
#define CUDIAG_DRIVER_CALL(name, parameters, errors, role) {#name, Errors::errors, Role::role},
#include "shim/cuda/driver.def"
#undef CUDIAG_DRIVER_CALL
};

// Where the libcuda that was seen exports each function; nullptr: it has none, or none was seen.
// Written by whoever sees it: two threads may do so at once, and write the same.
void* real[entries];

template <class T>
T* load(T* const* from) {
    return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

template <class T>
void store(T** to, T* value) {
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

void* wrapper_of(size_t entry);

// By address alone. Some 60 compares, once for each function that a program asks for.
void* wrapper_for(void* address) {
    for (size_t entry = 0; entry < entries; ++entry) {
        if (load(&real[entry]) == address) {
            return wrapper_of(entry);
        }
    }
    return nullptr;
}

// CUlaunchConfig (cuda.h 11.8 to 13.0), as far as it is read.
struct LaunchConfig {
    unsigned grid[3];
    unsigned block[3];
    unsigned shared;
    void* stream;
};

// CUDA_ERROR_STREAM_CAPTURE_INVALIDATED (cuda.h): the capture is over as well.
constexpr int kInvalidated = 901;

uint64_t number_of(const void* handle) {
    return reinterpret_cast<uintptr_t>(handle);
}

void set_stream(Launch& launch, const void* stream, bool per_thread) {
    launch.handle = number_of(stream);
    launch.per_thread = per_thread;
    launch.stream = stream != nullptr ? launch.handle
                    : per_thread      ? kPerThreadStream
                                      : kLegacyStream;
}

// Of cuLaunchKernel and cuLaunchCooperativeKernel; `rest` is the kernel's own parameters.
template <class... Rest>
__attribute__((always_inline)) inline Launch launch_of(bool per_thread, void* function,
                                                       unsigned grid_x, unsigned grid_y,
                                                       unsigned grid_z, unsigned block_x,
                                                       unsigned block_y, unsigned block_z,
                                                       unsigned shared, void* stream,
                                                       Rest... /*rest*/) {
    Launch launch;
    launch.function = number_of(function);
    launch.grid[0] = grid_x;
    launch.grid[1] = grid_y;
    launch.grid[2] = grid_z;
    launch.block[0] = block_x;
    launch.block[1] = block_y;
    launch.block[2] = block_z;
    launch.shared = shared;
    set_stream(launch, stream, per_thread);
    return launch;
}

// One by one, as they were written a moment ago: see record/hot.h.
unsigned now(const unsigned& number) {
    return __atomic_load_n(&number, __ATOMIC_RELAXED);
}

// Of cuLaunchKernelEx.
__attribute__((always_inline)) inline Launch launch_of(bool per_thread, const void* config,
                                                       void* function, void* /*parameters*/,
                                                       void* /*extra*/) {
    Launch launch;
    launch.function = number_of(function);
    const auto* const asked = static_cast<const LaunchConfig*>(config);
    if (asked != nullptr) {
        launch.grid[0] = now(asked->grid[0]);
        launch.grid[1] = now(asked->grid[1]);
        launch.grid[2] = now(asked->grid[2]);
        launch.block[0] = now(asked->block[0]);
        launch.block[1] = now(asked->block[1]);
        launch.block[2] = now(asked->block[2]);
        launch.shared = asked->shared;
    }
    set_stream(launch, asked == nullptr ? nullptr : asked->stream, per_thread);
    return launch;
}

// Of cuGraphLaunch.
__attribute__((always_inline)) inline Launch launch_of(bool per_thread, void* graph, void* stream) {
    Launch launch;
    launch.kind = HotKind::graph_launch;
    launch.function = number_of(graph);
    set_stream(launch, stream, per_thread);
    return launch;
}

constexpr bool is_launch(Role role) {
    return role >= Role::launch && role <= Role::graph_launch_ptsz;
}

constexpr bool is_graph(Role role) {
    return role == Role::graph_launch || role == Role::graph_launch_ptsz;
}

constexpr bool is_per_thread(Role role) {
    return role == Role::launch_ptsz || role == Role::launch_ex_ptsz ||
           role == Role::graph_launch_ptsz;
}

// What the first parameter of so many functions points to, once they succeeded.
uint64_t given(const void* where) {
    return where == nullptr ? 0 : number_of(*static_cast<void* const*>(where));
}

// What of a call's arguments its role asks for. Everything else of them is not looked at.
template <Role role>
struct Noted {
    template <class... Rest>
    static CallDetails details(Rest... /*rest*/) {
        return {};
    }

    template <class... Rest>
    static void succeeded(Rest... /*rest*/) {}
};

template <>
struct Noted<Role::start> : Noted<Role::call> {
    // A runtime that finds the driver too old asks for its version, and never for cuInit.
    template <class... Rest>
    static void succeeded(Rest... /*rest*/) {
        remember_driver();
    }
};

template <>
struct Noted<Role::resolver> : Noted<Role::call> {
    template <class... Rest>
    static void succeeded(const char* /*name*/, void** address, Rest... /*rest*/) {
        void* const wrapper =
            address == nullptr || *address == nullptr ? nullptr : wrapper_for(*address);
        if (wrapper != nullptr) {
            *address = wrapper;
        }
    }
};

template <>
struct Noted<Role::context_made> : Noted<Role::call> {
    template <class... Rest>
    static void succeeded(const void* context, Rest... /*rest*/) {
        note_context(given(context));
    }
};

// Waits; `began` is when.
void waited_for(Role /*role*/, uint64_t began) {
    note_waited(WaitedFor::context, 0, began);
}

void waited_for(Role role, uint64_t began, void* handle) {
    if (role == Role::context_wait) {
        note_waited(WaitedFor::context, number_of(handle), began);
    } else {
        note_waited(WaitedFor::stream,
                    handle != nullptr                ? number_of(handle)
                    : role == Role::stream_wait_ptsz ? kPerThreadStream
                                                     : kLegacyStream,
                    began);
    }
}

// Calls in which the driver may compile code.
constexpr bool readies_code(Role role) {
    return role == Role::load_file || role == Role::load || role == Role::lookup ||
           role == Role::lookup_kernel || role == Role::function_of_kernel;
}

constexpr bool is_wait(Role role) {
    return role == Role::context_wait || role == Role::stream_wait ||
           role == Role::stream_wait_ptsz;
}

// What a step that is slower than others may have waited for (CUDIAG_PROFILE).
constexpr bool is_slow(Role role) {
    return readies_code(role) || role == Role::allocation;
}

template <>
struct Noted<Role::load_file> : Noted<Role::call> {
    template <class... Rest>
    static CallDetails details(void* /*handle*/, const char* file, Rest... /*rest*/) {
        CallDetails details;
        details.name = file;
        return details;
    }
};

template <>
struct Noted<Role::load> : Noted<Role::call> {
    template <class... Rest>
    static CallDetails details(void* /*handle*/, const void* image, Rest... rest) {
        CallDetails details;
        details.image = image;
        details.is_module = sizeof...(rest) == 0;
        return details;
    }

    template <class... Rest>
    static void succeeded(const void* handle, const void* image, Rest... /*rest*/) {
        note_code(given(handle), image);
    }
};

template <HandleKind kind>
struct NotedLookup {
    static CallDetails details(void* /*handle*/, void* code, const char* name) {
        CallDetails details;
        details.handle = number_of(code);
        details.name = name;
        return details;
    }

    static void succeeded(const void* handle, const void* code, const char* name) {
        note_kernel(kind, given(handle), number_of(code), name);
    }
};

template <>
struct Noted<Role::lookup> : NotedLookup<HandleKind::function> {};

template <>
struct Noted<Role::lookup_kernel> : NotedLookup<HandleKind::kernel> {};

template <>
struct Noted<Role::function_of_kernel> {
    static CallDetails details(void* /*function*/, void* kernel) {
        CallDetails details;
        details.handle = number_of(kernel);
        return details;
    }

    static void succeeded(const void* function, const void* kernel) {
        note_function_of_kernel(given(function), number_of(kernel));
    }
};

template <>
struct Noted<Role::allocation> : Noted<Role::call> {
    template <class... Rest>
    static CallDetails details(void* /*memory*/, size_t bytes, Rest... /*rest*/) {
        CallDetails details;
        details.bytes = bytes;
        return details;
    }
};

template <>
struct Noted<Role::graph_made> : Noted<Role::call> {
    template <class... Rest>
    static void succeeded(const void* executable, void* graph, Rest... /*rest*/) {
        note_graph(given(executable), graph);
    }
};

template <>
struct Noted<Role::stream_made> : Noted<Role::call> {
    template <class... Rest>
    static void succeeded(const void* stream, Rest... /*rest*/) {
        note_stream(given(stream), true);
    }
};

template <>
struct Noted<Role::stream_gone> : Noted<Role::call> {
    static void succeeded(void* stream) { note_stream(number_of(stream), false); }
};

template <>
struct Noted<Role::capture_begun> : Noted<Role::call> {
    template <class... Rest>
    static void succeeded(Rest... /*rest*/) {
        note_capture(true);
    }
};

// One for each row. The program's arguments go to the real function as they are, and its result
// comes back as it is. What a successful call costs: a load, a call and a compare; a launch also
// its record.
template <size_t entry, class Function>
struct Wrapper;

template <size_t entry, class... Arguments>
struct Wrapper<entry, int(Arguments...)> {
    using Function = int(Arguments...);
    static constexpr Role kRole = kCalls[entry].role;
    static constexpr HotKind kHotKind = is_graph(kRole) ? HotKind::graph_launch : HotKind::launch;

    static int call(Arguments... arguments) {
        auto* const function = reinterpret_cast<Function*>(load(&real[entry]));
        if constexpr (is_launch(kRole)) {
            return launch(function, __builtin_return_address(0), arguments...);
        } else {
            const uint64_t began = is_wait(kRole)        ? read_ticks()
                                   : readies_code(kRole) ? monotonic_ns()
                                                         : 0;
            const uint64_t in_profile = is_slow(kRole) ? slow_call_begins() : 0;
            const int result = function(arguments...);
            if constexpr (is_slow(kRole)) {
                slow_call_ended(kRole == Role::allocation ? SlowCall::allocation : SlowCall::load,
                                in_profile);
            }
            if (kRole == Role::capture_ended && (result == 0 || result == kInvalidated)) {
                note_capture(false);
            }
            if (__builtin_expect(result != 0, 0)) {
                note_failed_call(kCalls[entry], entry, result,
                                 number_of(__builtin_return_address(0)),
                                 Noted<kRole>::details(arguments...));
            } else if constexpr (is_wait(kRole)) {
                waited_for(kRole, began, arguments...);
            } else {
                Noted<kRole>::succeeded(arguments...);
                if constexpr (kRole == Role::context_gone) {
                    note_context_gone(kCalls[entry], entry, number_of(__builtin_return_address(0)));
                }
                if constexpr (readies_code(kRole)) {
                    const CallDetails details = Noted<kRole>::details(arguments...);
                    note_if_slow({.name = kCalls[entry].name,
                                  .began_ns = began,
                                  .handle = details.handle,
                                  .image = details.image,
                                  .file = kRole == Role::load_file ? details.name : nullptr,
                                  .kernel = kRole == Role::load_file ? nullptr : details.name});
                }
            }
            return result;
        }
    }

  private:
    // Nothing of the launch outlives what it is noted with: what the rare ways look at is put
    // together again there, and here all stays in registers.
    __attribute__((always_inline)) static int launch(Function* function, const void* caller,
                                                     Arguments... arguments) {
        if (!__builtin_expect(launch_is_plain(), 1)) {
            return watched_launch(function, caller, arguments...);
        }
        note_plain_launch<kHotKind>(launch_of(is_per_thread(kRole), arguments...));
        const int result = function(arguments...);
        if (__builtin_expect(result != 0, 0)) {
            return note_failed_launch(result, caller, arguments...);
        }
        return result;
    }

    __attribute__((noinline, cold)) static int note_failed_launch(int result, const void* caller,
                                                                  Arguments... arguments) {
        const Launch launch = launch_of(is_per_thread(kRole), arguments...);
        note_failed_call(kCalls[entry], entry, result, number_of(caller), {.launch = &launch});
        return result;
    }

    // The program gets its launch's own result: the error of a wait comes back from its next call
    // as well.
    __attribute__((noinline, cold)) static int watched_launch(Function* function,
                                                              const void* caller,
                                                              Arguments... arguments) {
        Launch launch = launch_of(is_per_thread(kRole), arguments...);
        note_launch(launch);
        const int result = function(arguments...);
        const int waited =
            result == 0 && must_settle() ? settle_launch(launch, kCalls[entry].name) : 0;
        if (result != 0 || waited != 0) {
            note_failed_call(kCalls[entry], entry, result != 0 ? result : waited, number_of(caller),
                             {.launch = &launch, .waited = result == 0});
        }
        return result;
    }
};

void* wrapper_of(size_t entry) {
    static void* const wrappers[entries] = {
// NOLINTBEGIN(bugprone-macro-parentheses): part of a type, which can bear none
#define CUDIAG_DRIVER_CALL(name, parameters, errors, role) \
    reinterpret_cast<void*>(&Wrapper<entry_##name, int parameters>::call),
#include "shim/cuda/driver.def"
#undef CUDIAG_DRIVER_CALL
        // NOLINTEND(bugprone-macro-parentheses)
    };
    return wrappers[entry];
}

// Stands where a function was that only an unloaded libcuda had: CUDA_ERROR_DEINITIALIZED.
int is_gone() {
    return 4;
}

struct Search {
    void* address;  // that the program was given
    size_t entry;   // under whose name
    bool found;
    bool older_one_lives;
    void* addresses[entries];
    AskedDriver asked;
};

bool is_libcuda(const struct dl_phdr_info& info) {
    const char* soname = soname_of(info);
    return soname != nullptr && strncmp(soname, "libcuda.so", strlen("libcuda.so")) == 0;
}

int search_object(struct dl_phdr_info* info, size_t /*size*/, void* data) {
    auto& search = *static_cast<Search*>(data);
    if (!is_libcuda(*info)) {
        return 0;
    }
    void* const known = load(&real[entry_cuInit]);
    if (known != nullptr && exported_address(*info, kCalls[entry_cuInit].name) == known) {
        search.older_one_lives = true;
    } else if (exported_address(*info, kCalls[search.entry].name) == search.address) {
        search.found = true;
        search.asked = asked_driver_in(*info);
        for (size_t entry = 0; entry < entries; ++entry) {
            search.addresses[entry] = exported_address(*info, kCalls[entry].name);
        }
    }
    return 0;
}

// Two names of one address have one signature, and nothing tells which: neither is replaced.
void drop_twins(void* (&addresses)[entries]) {
    for (size_t a = 0; a < entries; ++a) {
        bool twin = false;
        for (size_t b = a + 1; b < entries; ++b) {
            if (addresses[a] != nullptr && addresses[b] == addresses[a]) {
                addresses[b] = nullptr;
                twin = true;
            }
        }
        addresses[a] = twin ? nullptr : addresses[a];
    }
}

// Of several libcuda in a process only the first is stood before, until it is unloaded: a wrapper
// knows one real function.
void learn(size_t entry, void* address) {
    Search search{};
    search.address = address;
    search.entry = entry;
    (void)dl_iterate_phdr(search_object, &search);
    if (!search.found || search.older_one_lives) {
        return;
    }
    drop_twins(search.addresses);
    if (search.addresses[entry_cuInit] == nullptr) {
        return;  // by which it is known again
    }
    set_asked_driver(search.asked);
    for (size_t each = 0; each < entries; ++each) {
        void* next = search.addresses[each];
        if (next == nullptr && load(&real[each]) != nullptr) {
            next = reinterpret_cast<void*>(&is_gone);
        }
        store(&real[each], next);
    }
}

size_t entry_of(const char* name) {
    size_t entry = 0;
    while (entry < entries && strcmp(kCalls[entry].name, name) != 0) {
        ++entry;
    }
    return entry;
}

}  // namespace

bool is_driver_call(const char* name) {
    return entry_of(name) < entries;
}

void* stand_in_for(const char* name, void* address) {
    const KeepErrno keep;
    const size_t entry = entry_of(name);
    if (address == nullptr || entry == entries) {
        return address;
    }
    const bool is_new = load(&real[entry]) != address;
    if (is_new) {
        learn(entry, address);
        rebind(When::later);  // what calls the runtime or NCCL is there by now
    }
    // From now on calls are noted, most of them without the GIL; here it is often held.
    prove_python_memory(is_new ? LookForPython::yes : LookForPython::no);
    return load(&real[entry]) == address ? wrapper_of(entry) : address;
}

bool driver_is_known() {
    return load(&real[entry_cuInit]) != nullptr;
}

bool driver_path(char* path, size_t size) {
    uint64_t offset = 0;
    void* const init = load(&real[entry_cuInit]);
    return init != nullptr &&
           module_holding(reinterpret_cast<uintptr_t>(init), path, size, &offset);
}

uint64_t driver_version() {
    auto* const ask = reinterpret_cast<int (*)(int*)>(load(&real[entry_cuDriverGetVersion]));
    int version = 0;
    return ask != nullptr && ask(&version) == 0 && version > 0 ? static_cast<uint64_t>(version) : 0;
}

const char* driver_words(int error) {
    auto* const ask = asked_driver().cuGetErrorString;
    const char* words = nullptr;
    return ask != nullptr && ask(error, &words) == 0 && words != nullptr ? words : "";
}

}  // namespace cudiag
