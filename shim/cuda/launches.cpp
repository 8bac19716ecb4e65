#include "shim/cuda/launches.h"

#include <string.h>
#include <sys/mman.h>

#include "record/keep_errno.h"
#include "shim/cuda/asked_driver.h"
#include "shim/cuda/core_dump.h"
#include "shim/cuda/driver_log.h"
#include "shim/cuda/failed_calls.h"
#include "shim/cuda/progress.h"
#include "shim/cuda/sites.h"
#include "shim/cuda/slow_code.h"
#include "shim/profile.h"
#include "shim/session.h"
#include "shim/start_environment.h"
#include "shim/step_hooks.h"

namespace cudiag {

constinit thread_local OwnRing own_ring;

namespace {

constexpr uint32_t kCaptures = kCount - 1;

// Launches that are timed after a look-up: a runtime looks a kernel up for its first launch, and
// other threads launch meanwhile. Who looks up all kernels at the start loads them there as well.
constexpr int kTimed = 64;
int to_be_timed = 0;

bool prepared = false;
constexpr size_t kContexts = 64;
uint64_t contexts[kContexts];
uint64_t contexts_made = 0;

bool is_set(const char* name) {
    const char* value = start_variable(name);
    return value != nullptr && strcmp(value, "1") == 0;
}

void take_ring() {
    const uint32_t recording = __atomic_load_n(&hot_state.recording, __ATOMIC_RELAXED);
    uint32_t records = 0;
    RingHead* const ring = prepare_for_launches() ? claim_ring(&records) : nullptr;
    const bool own = ring != nullptr && ring->tid != kSharedRing;
    own_ring = {
        .ring = ring, .recording = recording, .plain = own ? recording : 0, .mask = records - 1};
}

// nullptr if there is none.
RingHead* ring_of_thread() {
    if (own_ring.recording != __atomic_load_n(&hot_state.recording, __ATOMIC_RELAXED)) {
        take_ring();
    }
    return own_ring.ring;
}

void note_hot(HotKind kind, uint16_t flags, const uint64_t (&words)[6]) {
    append_hot_record(own_ring.ring, own_ring.mask, static_cast<uint16_t>(kind), flags, words);
    own_ring.undated = 0;
}

bool is_capturing(const Launch& launch) {
    const AskedDriver& driver = asked_driver();
    auto* const ask =
        launch.per_thread ? driver.cuStreamIsCapturing_ptsz : driver.cuStreamIsCapturing;
    int status = 0;
    // The legacy stream gives an error while another stream is captured: it takes no launch then.
    return ask != nullptr && ask(handle_of(launch.handle), &status) == 0 && status != 0;
}

struct Count {
    uint64_t kernels;
    uint64_t nodes;
};

// CUgraphNodeType (cuda.h)
constexpr int kKernelNode = 0;
constexpr int kChildGraph = 4;

void count_nodes(void* graph, Count& count, int depth) {
    const AskedDriver& driver = asked_driver();
    constexpr int kDeepest = 8;
    constexpr size_t kMost = 1 << 20;
    size_t nodes = 0;
    if (depth > kDeepest || driver.cuGraphGetNodes(graph, nullptr, &nodes) != 0 || nodes == 0 ||
        nodes > kMost) {
        return;
    }
    const size_t bytes = nodes * sizeof(void*);
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return;
    }
    auto* const list = static_cast<void**>(memory);
    if (driver.cuGraphGetNodes(graph, list, &nodes) == 0) {
        count.nodes += nodes;
        for (size_t i = 0; i < nodes; ++i) {
            int type = -1;
            void* child = nullptr;
            if (driver.cuGraphNodeGetType(list[i], &type) != 0) {
                continue;
            }
            count.kernels += type == kKernelNode ? 1 : 0;
            if (type == kChildGraph && driver.cuGraphChildGraphNodeGetGraph(list[i], &child) == 0) {
                count_nodes(child, count, depth + 1);
            }
        }
    }
    (void)munmap(memory, bytes);
}

void watch_launch(Launch& launch) {
    const uint32_t now = __atomic_load_n(&hot_state.watch, __ATOMIC_RELAXED);
    launch.site = (now & (kTrack | kSync)) != 0 ? note_site() : 0;
    if ((now & kFresh) != 0) {
        if (__atomic_sub_fetch(&to_be_timed, 1, __ATOMIC_RELAXED) >= 0) {
            launch.began_ns = monotonic_ns();
        } else {
            (void)__atomic_and_fetch(&hot_state.watch, ~kFresh, __ATOMIC_ACQ_REL);
        }
    }
    if ((now & kCaptures) != 0 && is_capturing(launch)) {
        launch.flags |= kCapturing;
        return;
    }
    if ((now & kTrack) != 0) {
        mark_launch(launch);
    }
    if ((now & kCount) != 0) {
        count_launch();
    }
}

}  // namespace

bool prepare_for_launches() {
    const KeepErrno keep;
    if (!open_rings()) {
        return session_state() == SessionState::open;
    }
    if (!__atomic_exchange_n(&prepared, true, __ATOMIC_ACQ_REL)) {
        note_driver();
        listen_to_driver();
        note_core_dump();
        const uint32_t wanted =
            (is_set("CUDIAG_TRACK") ? kTrack : 0) | (is_set("CUDIAG_SYNC") ? kSync : 0);
        (void)__atomic_or_fetch(&hot_state.watch, wanted, __ATOMIC_ACQ_REL);
    }
    if (__builtin_expect(profile_is_wanted(), 0)) {
        begin_profile();
        arm_step_hooks();
    }
    return true;
}

void note_launch(Launch& launch) {
    const KeepErrno keep;
    RingHead* const ring = ring_of_thread();
    // Without a ring too: a profile counts the launch, and CUDIAG_SYNC waits for it.
    if (__atomic_load_n(&hot_state.watch, __ATOMIC_RELAXED) != 0) {
        watch_launch(launch);
    }
    if (ring != nullptr) {
        note_hot(launch.kind, launch.flags, LaunchWords(launch).words);
    }
}

int settle_launch(const Launch& launch, const char* call) {
    const KeepErrno keep;
    if (launch.began_ns != 0) {
        note_if_slow({.name = call, .began_ns = launch.began_ns, .handle = launch.function});
    }
    if ((launch.flags & kCapturing) != 0) {
        return 0;
    }
    if (launch.mark != 0 && !finish_mark(launch)) {
        (void)__atomic_and_fetch(&hot_state.watch, ~kTrack, __ATOMIC_ACQ_REL);
    }
    const AskedDriver& driver = asked_driver();
    auto* const wait =
        launch.per_thread ? driver.cuStreamSynchronize_ptsz : driver.cuStreamSynchronize;
    if ((__atomic_load_n(&hot_state.watch, __ATOMIC_RELAXED) & kSync) == 0 || wait == nullptr) {
        return 0;
    }
    const uint64_t began = read_ticks();
    const int result = wait(handle_of(launch.handle));
    if (result == 0) {
        note_waited(WaitedFor::stream, launch.stream, began);
    }
    return result;
}

void expect_first_launch() {
    __atomic_store_n(&to_be_timed, kTimed, __ATOMIC_RELAXED);
    (void)__atomic_or_fetch(&hot_state.watch, kFresh, __ATOMIC_ACQ_REL);
}

void note_waited(WaitedFor what, uint64_t handle, uint64_t began) {
    // Before the first launch there is nothing to be done with.
    if (!__atomic_load_n(&prepared, __ATOMIC_ACQUIRE)) {
        return;
    }
    if (ring_of_thread() != nullptr) {
        const uint64_t words[6] = {handle, static_cast<uint64_t>(what),
                                   began,  __atomic_load_n(&contexts_made, __ATOMIC_RELAXED),
                                   0,      0};
        note_hot(HotKind::waited, 0, words);
    }
}

void note_context(uint64_t context) {
    for (uint64_t& known : contexts) {
        uint64_t found = 0;
        if (__atomic_compare_exchange_n(&known, &found, context, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            (void)__atomic_add_fetch(&contexts_made, 1, __ATOMIC_RELAXED);
            return;
        }
        if (found == context) {
            return;
        }
    }
}

void note_failure_in_ring(uint64_t call, int error, uint64_t stream, uint64_t function,
                          bool refused_launch) {
    // A process that never launched has no rings, and gets none for this.
    if (own_ring.ring != nullptr &&
        own_ring.recording == __atomic_load_n(&hot_state.recording, __ATOMIC_RELAXED)) {
        const uint64_t words[6] = {
            static_cast<uint64_t>(static_cast<unsigned>(error)), stream, function, call,
            refused_launch ? uint64_t{1} : uint64_t{0},          0};
        note_hot(HotKind::call_failed, 0, words);
    }
}

void note_capture(bool begins) {
    if (begins) {
        (void)__atomic_add_fetch(&hot_state.watch, 1, __ATOMIC_ACQ_REL);
        return;
    }
    uint32_t now = __atomic_load_n(&hot_state.watch, __ATOMIC_ACQUIRE);
    // A capture that was begun before the driver was seen is not counted.
    while ((now & kCaptures) != 0 &&
           !__atomic_compare_exchange_n(&hot_state.watch, &now, now - 1, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
    }
}

bool capture_is_going_on() {
    return (__atomic_load_n(&hot_state.watch, __ATOMIC_ACQUIRE) & kCaptures) != 0;
}

void count_launches(bool wanted) {
    (void)(wanted ? __atomic_or_fetch(&hot_state.watch, kCount, __ATOMIC_ACQ_REL)
                  : __atomic_and_fetch(&hot_state.watch, ~kCount, __ATOMIC_ACQ_REL));
}

void note_graph(uint64_t executable, void* graph) {
    const KeepErrno keep;
    const AskedDriver& driver = asked_driver();
    if (driver.cuGraphGetNodes == nullptr || driver.cuGraphNodeGetType == nullptr ||
        driver.cuGraphChildGraphNodeGetGraph == nullptr || !prepare_for_launches()) {
        return;
    }
    Count count{};
    count_nodes(graph, count, 0);
    const FieldValue fields[] = {FieldValue::of(Field::handle, executable),
                                 FieldValue::of(Field::count, count.kernels)};
    (void)note(EntryKind::cuda_graph, fields, 2);
}

void forget_launches() {
    prepared = false;
    hot_state.watch = 0;
    forget_progress();
    forget_sites();
    forget_slow_code();
}

}  // namespace cudiag
