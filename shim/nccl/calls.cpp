#include "shim/nccl/calls.h"

#include <string.h>

#include "record/keep_errno.h"
#include "shim/cuda/asked_driver.h"
#include "shim/cuda/slow_code.h"
#include "shim/fields.h"
#include "shim/forks.h"
#include "shim/modules.h"
#include "shim/repeats.h"

namespace cudiag {
namespace {

// Passed by value (nccl.h, NCCL_UNIQUE_ID_BYTES).
struct UniqueId {
    char bytes[128];
};

// What is noted of a function beyond its errors, and where its communicator stands.
enum class NcclRole : uint8_t {
    call,
    of_communicator,   // the first parameter
    of_rank,           // makes one: new, ranks, id, rank
    of_rank_scalable,  // makes one: new, ranks, rank
    of_all,            // makes several: new, ranks
    of_parent,         // makes one: parent, …, new as the fourth
    of_grown,          // makes one: parent, ranks, id, rank, new
    collective,        // the last but one parameter
    abort,             // noted in any case: whoever calls it has given up
    async_error,       // gives an error by its second parameter
};

enum Function : size_t {

#define CUDIAG_NCCL_CALL(name, parameters, role) function_##name,
#include "shim/nccl/calls.def"
#undef CUDIAG_NCCL_CALL
    wrapped,
    // Only asked by us.
    function_error_string = wrapped,
    function_last_error,
    functions
};

struct Row {
    const char* name;
    NcclRole role;
};

constexpr Row kRows[functions] = {
#define CUDIAG_NCCL_CALL(name, parameters, role) {#name, NcclRole::role},
#include "shim/nccl/calls.def"
#undef CUDIAG_NCCL_CALL
    {"ncclGetErrorString", NcclRole::call}, {"ncclGetLastError", NcclRole::call}};

// Written by rebind().
void* real[kCopies * functions];

// nccl.h: no error, the operation goes on (communicators that do not block).
constexpr int kInProgress = 7;

// In the place of a result: the call has begun, and may never return, since it waits for others.
constexpr int kEntered = 1000;

constexpr uint32_t kMost = 96;
constexpr uint32_t kMostAlike = 4;
Repeats<kMost, kMostAlike> repeats;

constexpr bool makes_communicator(NcclRole role) {
    return role >= NcclRole::of_rank && role <= NcclRole::of_grown;
}

void* real_of(size_t copy, size_t function) {
    return __atomic_load_n(&real[copy * functions + function], __ATOMIC_ACQUIRE);
}

uint64_t number_of(const void* pointer) {
    return reinterpret_cast<uintptr_t>(pointer);
}

// What the first of them points to: nothing is known of it before the call has succeeded.
uint64_t made(const void* where) {
    return where == nullptr ? 0 : number_of(*static_cast<void* const*>(where));
}

// What a call was for.
struct CallOfNccl {
    size_t copy = 0;
    size_t function = 0;
    int result = 0;
    uintptr_t caller = 0;
    uint64_t communicator = 0;
    int rank = -1;
    int ranks = -1;
    uint64_t duration_ns = 0;
};

void describe_rank(CallOfNccl& call, const void* where, int ranks, const UniqueId& /*id*/, int rank,
                   const void* /*config*/ = nullptr) {
    call.communicator = call.result == 0 ? made(where) : 0;
    call.ranks = ranks;
    call.rank = rank;
}

// Arguments by position: each role knows those of its own functions.
template <NcclRole role, class... Rest>
void describe(CallOfNccl& call, Rest... rest) {
    if constexpr (role == NcclRole::of_rank) {
        describe_rank(call, rest...);
    } else if constexpr (role == NcclRole::of_rank_scalable) {
        [&call](const void* where, int ranks, int rank, auto... /*rest*/) {
            call.communicator = call.result == 0 ? made(where) : 0;
            call.ranks = ranks;
            call.rank = rank;
        }(rest...);
    } else if constexpr (role == NcclRole::of_all) {
        [&call](const void* where, int ranks, const void* /*devices*/) {
            call.communicator = call.result == 0 ? made(where) : 0;
            call.ranks = ranks;
        }(rest...);
    } else if constexpr (role == NcclRole::of_parent) {
        [&call](const void* parent, auto /*second*/, int /*third*/, const void* where,
                auto... /*rest*/) {
            call.communicator = call.result == 0 ? made(where) : number_of(parent);
        }(rest...);
    } else if constexpr (role == NcclRole::of_grown) {
        [&call](const void* parent, int ranks, const void* /*id*/, int rank, const void* where,
                const void* /*config*/) {
            call.communicator = call.result == 0 ? made(where) : number_of(parent);
            call.ranks = ranks;
            call.rank = rank;
        }(rest...);
    } else if constexpr (role == NcclRole::of_communicator || role == NcclRole::abort ||
                         role == NcclRole::async_error) {
        [&call](const void* communicator, auto... /*rest*/) {
            call.communicator = number_of(communicator);
        }(rest...);
    } else if constexpr (role == NcclRole::collective) {
        const void* pointers[] = {[](auto each) -> const void* {
            if constexpr (__is_same(decltype(each), void*)) {
                return each;
            } else {
                return nullptr;
            }
        }(rest)...};
        call.communicator = number_of(pointers[sizeof...(rest) - 2]);
    }
}

void add_words(const CallOfNccl& call, Fields& fields) {
    auto* const words =
        reinterpret_cast<const char* (*)(int)>(real_of(call.copy, function_error_string));
    auto* const last =
        reinterpret_cast<const char* (*)(void*)>(real_of(call.copy, function_last_error));
    if (call.result == 0 || call.result == kEntered) {
        return;
    }
    fields.add(FieldValue::of(Field::text, words != nullptr ? words(call.result) : ""));
    // A buffer of NCCL's own, of 1024 bytes (its src/debug.cc); the communicator is not looked at.
    constexpr size_t kLongest = 1024;
    const char* const warning = last != nullptr ? last(nullptr) : nullptr;
    if (warning != nullptr) {
        fields.add(FieldValue::of(Field::last_error, warning, strnlen(warning, kLongest)));
    }
}

// Out of line: a wrapper's frame stays small. Few of what is alike, unless it is `owed`: what was
// noted as entered is noted as returned. True if it was noted.
__attribute__((noinline, cold)) bool note_call(const CallOfNccl& call, bool owed) {
    const KeepErrno keep;
    if (session_state() == SessionState::off || in_vfork_child() ||
        (!owed && !repeats.is_new(key_of_call(call.function + 1, call.result, call.caller))) ||
        !open_session()) {
        return false;
    }
    constexpr size_t kPath = 1024;  // threads may have small stacks
    char caller[kPath];
    char library[kPath];
    uint64_t offset = 0;
    uint64_t unused = 0;
    Fields fields;
    (void)module_holding(call.caller, caller, sizeof caller, &offset);
    (void)module_holding(reinterpret_cast<uintptr_t>(real_of(call.copy, call.function)), library,
                         sizeof library, &unused);
    fields.add(FieldValue::of(Field::name, kRows[call.function].name));
    if (call.result != kEntered) {
        fields.add(FieldValue::of(Field::error,
                                  static_cast<uint64_t>(static_cast<unsigned>(call.result))));
    }
    fields.add(FieldValue::of(Field::path, library));
    fields.add(FieldValue::of(Field::caller, caller));
    fields.add(FieldValue::of(Field::caller_offset, offset));
    add_words(call, fields);
    fields.add(FieldValue::of(Field::communicator, call.communicator));
    if (call.ranks >= 0) {
        fields.add(FieldValue::of(Field::ranks, static_cast<uint64_t>(call.ranks)));
    }
    if (call.rank >= 0) {
        fields.add(FieldValue::of(Field::rank, static_cast<uint64_t>(call.rank)));
    }
    int device = -1;
    if (asked_driver().cuCtxGetDevice != nullptr && asked_driver().cuCtxGetDevice(&device) == 0 &&
        device >= 0) {
        fields.add(FieldValue::of(Field::device_ordinal, static_cast<uint64_t>(device)));
    }
    if (call.duration_ns != 0) {
        fields.add(FieldValue::of(Field::duration_ns, call.duration_ns));
    }
    PythonFrames frames;
    fields.add_frames(frames);
    return fields.note(EntryKind::nccl_call);
}

// ncclInternalError, of a library that is gone: the program holds a function that is no more.
constexpr int kGone = 3;

// The error that a call of ncclCommGetAsyncError has told, 0 if none.
int told_error(void* /*communicator*/, const void* where) {
    return where == nullptr ? 0 : *static_cast<const int*>(where);
}

// One for each row and copy. The program's arguments go to the real function as they are, and its
// result comes back as it is. What a successful collective costs: a load, a call and a compare.
template <size_t copy, size_t function, class Signature>
struct Wrapper;

template <size_t copy, size_t function, class... Arguments>
struct Wrapper<copy, function, int(Arguments...)> {
    static constexpr NcclRole kRole = kRows[function].role;

    static int call(Arguments... arguments) {
        auto* const call = reinterpret_cast<int (*)(Arguments...)>(real_of(copy, function));
        if (__builtin_expect(call == nullptr, 0)) {
            return kGone;
        }
        constexpr bool kMakes = makes_communicator(kRole);
        const auto caller = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
        uint64_t began = 0;
        bool owed = false;
        if constexpr (kMakes) {
            CallOfNccl entered{
                .copy = copy, .function = function, .result = kEntered, .caller = caller};
            describe<kRole>(entered, arguments...);
            owed = note_call(entered, false);
            began = monotonic_ns();
        }
        const int result = call(arguments...);
        int error = result;
        if constexpr (kRole == NcclRole::async_error) {
            error = result == 0 ? told_error(arguments...) : result;
        }
        constexpr bool kAlways = kMakes || kRole == NcclRole::abort;
        if (__builtin_expect(error != 0 && error != kInProgress, 0) || kAlways) {
            CallOfNccl noted{.copy = copy,
                             .function = function,
                             .result = error == kInProgress ? 0 : error,
                             .caller = caller,
                             .duration_ns = began != 0 ? monotonic_ns() - began : 0};
            describe<kRole>(noted, arguments...);
            (void)note_call(noted, owed);
        }
        return result;
    }
};

template <size_t copy>
void* wrapper_of_copy(size_t function) {
    static void* const wrappers[wrapped] = {
// NOLINTBEGIN(bugprone-macro-parentheses): part of a type, which can bear none
#define CUDIAG_NCCL_CALL(name, parameters, role) \
    reinterpret_cast<void*>(&Wrapper<copy, function_##name, int parameters>::call),
#include "shim/nccl/calls.def"
#undef CUDIAG_NCCL_CALL
        // NOLINTEND(bugprone-macro-parentheses)
    };
    return function < wrapped ? wrappers[function] : nullptr;
}

void* wrapper_of(size_t copy, size_t function) {
    constexpr decltype(&wrapper_of_copy<0>) kOfCopies[kCopies] = {
        wrapper_of_copy<0>, wrapper_of_copy<1>, wrapper_of_copy<2>, wrapper_of_copy<3>};
    return kOfCopies[copy](function);
}

const char* name_of(size_t function) {
    return kRows[function].name;
}

}  // namespace

const Family& nccl_functions() {
    static constexpr Family kNccl{.soname = "libnccl",
                                  .imported = "nccl",
                                  .functions = functions,
                                  .name = name_of,
                                  .wrapper = wrapper_of,
                                  .real = real};
    return kNccl;
}

bool is_nccl_call(const char* name) {
    for (size_t function = 0; function < wrapped; ++function) {
        if (strcmp(kRows[function].name, name) == 0) {
            return true;
        }
    }
    return false;
}

void forget_nccl_calls() {
    repeats.forget();
}

}  // namespace cudiag
