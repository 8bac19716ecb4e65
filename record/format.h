// The recording: what a dying process leaves behind. The only file that both the shim and the
// command include.
//
// One file per process, mapped MAP_SHARED and allocated in full before use:
//
//   offset 0            Header, one page
//   progress_offset     kProgressSlots slots of what streams of the GPU have finished (0: none)
//   log_offset          the cold log: entries of any kind, appended, never overwritten
//   rings_offset        ring_count rings of ring_records hot records of 64 bytes, each owned by one
//   thread, or by all that found none of their own (kSharedRing)
//
// Rings may be added while the recording is written: ring_count is stored last. rings_offset is
// log_offset + log_bytes, and file_bytes is where the rings end. All integers are in the byte order
// of the machine that wrote the file; `byte_order` says which. A reader trusts nothing here: every
// offset and length is checked against the file's real size (record/reader.cpp).
//
// Compatibility: readers skip entry kinds and fields they do not know. kFormatVersion rises only
// when an old reader would misread the file; new kinds and fields do not raise it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cudiag {

inline constexpr char kMagic[8] = {'C', 'U', 'D', 'I', 'A', 'G', 'R', '\n'};
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::uint32_t kByteOrder = 0x01020304;
inline constexpr std::size_t kHeaderBytes = 4096;
inline constexpr std::size_t kProgressBytes = 4096;
inline constexpr std::uint32_t kSharedRing = 0xffffffff;  // in the place of a thread's id

// How a process ended, as far as it could tell us itself. `none` in the file of a process that is
// gone means that it was killed by a signal or ended by a raw system call.
enum class EndHow : std::uint32_t {
    none = 0,
    exit = 1,      // exit(), return from main: atexit handlers ran
    exit_now = 2,  // _exit, _Exit
    quick_exit = 3,
    abort = 4,  // abort(): SIGABRT follows
    exec = 5,   // the image was replaced; the new one has a recording of its own if it has anything
                // to say
};

// Offset 0 of the file. Words written by several threads are accessed with __atomic builtins only.
struct Header {
    char magic[8];
    std::uint32_t version;
    std::uint32_t byte_order;
    std::uint64_t file_bytes;
    std::uint64_t log_offset;
    std::uint64_t log_bytes;
    std::uint64_t rings_offset;
    std::uint32_t ring_count;
    std::uint32_t ring_records;
    std::int32_t pid;
    std::int32_t ppid;
    std::int32_t root_pid;  // the process that prints for this run
    std::uint32_t uid;
    std::uint64_t start_ticks;  // field 22 of /proc/PID/stat: tells a reused pid from this process
    std::uint64_t root_start_ticks;
    // Two readings of both clocks turn ticks (rdtsc, cntvct_el0) into time: at opening, and at the
    // last settled event.
    std::uint64_t open_realtime_ns;
    std::uint64_t open_ticks;
    std::uint64_t last_realtime_ns;
    std::uint64_t last_ticks;
    std::uint64_t log_tail;       // bytes of the log handed out
    std::uint64_t log_dropped;    // entries that found no room
    std::uint64_t rings_refused;  // threads that found no ring
    std::uint32_t end_how;        // EndHow
    std::int32_t end_status;      // exit status, or the signal for abort
    std::uint64_t end_realtime_ns;
    std::uint64_t progress_offset;
};

static_assert(sizeof(Header) <= kHeaderBytes && std::is_trivially_copyable_v<Header>);
static_assert(offsetof(Header, file_bytes) == 16 && offsetof(Header, log_tail) == 120);

// Kinds of log entries. Numbers are for ever.
enum class EntryKind : std::uint16_t {
    process = 1,   // who this is: exe, argv, cwd; once per recording, first
    variable = 2,  // one environment variable that matters here, as the process was started with it
    module = 3,    // one mapped object of a snapshot, in link-map order
    snapshot = 4,  // ends a list of modules: snapshot number, count
    dlopen_failed = 5,     // a dlopen or dlmopen whose error the program read
    dlsym_failed = 6,      // a symbol lookup whose error the program read
    python_exception = 7,  // the exception that ended the interpreter
    child_ended = 8,       // a child of this process died by a signal
    exec = 9,              // this process replaced its image
    given_up = 10,         // recording stopped, with the reason
    // Of the journal (below), but for asked_program, which stands in recordings too.
    step_started = 11,   // a build tool began: who, where, with what, under which limits
    step_ended = 12,     // it ended; where it failed, what it had looked for
    asked_program = 13,  // a program that was asked for and could not be started, or ended with a
                         // status other than 0, or builds: as its parent saw it
    lock_held = 14,      // a file named `lock` was to be made and was there already
    build_file = 15,     // a build.ninja was opened by a program that is no build tool
    // Of recordings again.
    cuda_driver = 16,       // the libcuda that this process asks: path, driver_version
    cuda_call_failed = 17,  // a call of the driver gave an error: name, error, text, caller,
                            // frames, and what it was asked for (the fields from bytes_asked on)
    cuda_function = 18,  // a kernel was looked up: handle, name; or, of another kernel, of_handle
    cuda_log = 19,       // a line that the driver wrote in its log: text, level
    cuda_graph = 20,     // a graph was instantiated: handle, count (its kernels)
    cuda_site = 21,      // a place in Python that launches: index, frames
    cuda_tracking = 22,  // CUDIAG_TRACK: name; text, why not, if it is off; path, of a ProgressSlot
                         // page that is kept apart while the process lives
    cuda_core = 23,      // the driver was told to write a core dump of the GPU: path, of the file
    // Of a profile (below).
    profile = 24,         // what was asked for: name (CUDIAG_PROFILE's value)
    profile_window = 25,  // CUPTI began to record, or ended (status 1, 0): count, launches so far;
                          // when it began path of libcupti and cupti_version; when it ended kept,
                          // dropped (if it could be read), not_kept, spent, shared
    profile_lacks = 26,   // there is no device timeline: text why, name of the call that was
                          // refused and error (a CUptiResult), if one was
    profile_client = 27,  // another client of CUPTI: name of the call, caller, caller_offset, error
    profile_device = 28,  // device_ordinal, name, value (its UUID as nvidia-smi writes it), text
                          // (the driver's release)
    profile_name = 29,    // index, name of a kernel (mangled)
    device_records = 30,  // records: DeviceRecords, one behind another
    optimizer = 31,       // index, text: lines "key\tvalue…" (shim/step_hooks.py)
    optimizer_step = 32,  // records: one StepRecord
    nccl_call = 40,       // a call of NCCL that gave an error, or is to make a communicator: name,
                          // error (a ncclResult_t; none: it is entered, and one with it follows),
                          // path of its library, caller, frames, rank, ranks, device
    native_exception = 41,  // the C++ exception that ended the process: type, mangled; text
    cuda_code_slow = 42,    // a call of the driver took as long as only its compiler takes: name,
                            // duration_ns, path and code_offset, argument; of the device as in a
                            // cuda_call_failed; handle, of a kernel
    runtime_error_asked = 43,  // the words for an error of cudart were asked for: name, error,
                               // text, path of cudart, caller, frames
    cuda_context_gone = 44,    // a context was destroyed: name (of the call), caller, frames
};

// Fields of an entry: id, length and bytes. An entry may hold a field several times; order is kept.
enum class Field : std::uint16_t {
    // text, not terminated, any bytes
    path = 1,  // a file
    name = 2,  // a name as the program wrote it: dlopen's argument, a variable, a symbol
    value = 3,
    text = 4,      // an error text as the program saw it
    argument = 5,  // one of argv, in order
    working_directory = 6,
    caller = 7,       // path of the module that called
    python_file = 8,  // with python_line and python_function: one frame, the innermost first
    python_function = 9,
    type = 10,        // an exception's type
    cgroup = 11,      // path of the memory cgroup, below its mount point
    opens = 12,       // paths, the oldest first, each ended by NUL and begun by '+' if the file
                      // could be opened, by '-' if not
    records = 32,     // fixed structures of a profile, one behind another
    last_error = 40,  // ncclGetLastError's, after the call
    // unsigned 64-bit
    python_line = 64,
    flags = 65,          // dlopen's mode
    caller_offset = 66,  // return address less the caller's load base
    snapshot = 67,       // number of the module list that was true at this event
    index = 68,
    base = 69,       // load base
    tls_bytes = 70,  // PT_TLS memory size
    pid = 71,
    status = 72,          // as wait(2) gives it
    link_namespace = 73,  // dlmopen's namespace argument
    certain = 74,         // 1: the shim saw breakage, not a probe (shim/intercept/dl.cpp says when)
    device = 75,          // st_dev and st_ino of a mapped file
    inode = 76,
    chain = 77,   // python_exception: 0 the exception itself, 1 its cause or context, and so on
    root = 78,    // 1: of the shim's own object
    parent = 79,  // pid of the nearest ancestor that is no shell or launcher; 0: none
    start_ticks = 80,   // as Header::start_ticks
    how = 81,           // EndHow
    error = 82,         // errno
    peak_bytes = 83,    // VmHWM: what it held in memory at most
    mapped_bytes = 84,  // VmPeak: what it had mapped at most
    mapped_limit = 85,  // RLIMIT_AS
    memory_limit = 86,  // the lowest limit of the memory cgroup and those above it
    memory_peak = 87,   // of the cgroup, all its processes together
    oom_kills = 88,     // of the cgroup, ever
    cgroup_version = 89,
    process_limit = 90,       // pids.max, the lowest of the cgroup and those above it
    processes_refused = 91,   // pids.events max: forks refused, ever
    count = 92,               // of the same thing
    user_process_limit = 93,  // RLIMIT_NPROC
    driver_version = 94,      // as cuDriverGetVersion gives it: 13000 is 13.0
    bytes_asked = 95,         // of an allocation
    bytes_free = 96,          // of the device's memory, after the failure (cuMemGetInfo)
    bytes_total = 97,
    handle = 98,     // of a kernel, a function, a graph
    of_handle = 99,  // the kernel that this function is of
    stream = 100,    // as in a launch's record
    grid = 101,      // three times
    block = 102,     // three times
    shared_bytes = 103,
    level = 104,           // CUlogLevel
    device_ordinal = 105,  // as cuCtxGetDevice gives it
    limit = 106,           // of the device or the function: (CUdevice_attribute << 32) | value
    function_limit = 107,  // (CUfunction_attribute << 32) | value
    code_offset = 108,     // its address in the file `path`, as the file's own headers count
    launched = 109,        // 1: the call is a launch that CUDIAG_SYNC waited for
    // of profiles
    cupti_version = 160,  // as cuptiGetVersion gives it
    kept = 161,           // device records written so far
    dropped = 162,        // records that CUPTI had no buffer for
    not_kept = 163,       // records that found no room in the file
    spent = 164,          // ns that our work on CUPTI's buffers took
    shared = 165,         // 1: another client had CUPTI record as well
    // of calls
    rank = 170,          // in the communicator to be
    ranks = 171,         // how many it is to have
    duration_ns = 172,   // of the call
    communicator = 173,  // an ncclComm_t
};

// Text fields of a cuda_call_failed: `path`, the file that holds the code (or is it); `value`, the
// device's name; `argument`, a name that was looked up; `type`, the log of the driver's JIT.

// An entry: this head, then fields, each FieldHead + bytes padded to 8. `commit` is stored last
// (release): 0 while the entry is being written, kCommitted ^ bytes once it is whole. `bytes` is
// stored before all else, so that a reader can step over an entry that was never finished; one that
// was handed out and never begun is zeros.
struct EntryHead {
    std::uint32_t commit;
    std::uint32_t bytes;  // of the whole entry, a multiple of 8
    std::uint16_t kind;
    std::uint16_t reserved;
    std::uint32_t tid;
    std::uint64_t realtime_ns;
};

inline constexpr std::uint32_t kCommitted = 0xC0DA0001;
static_assert(sizeof(EntryHead) == 24 && offsetof(EntryHead, realtime_ns) == 16);

struct FieldHead {
    std::uint16_t field;
    std::uint16_t reserved;
    std::uint32_t bytes;  // of the value, unpadded
};

static_assert(sizeof(FieldHead) == 8);

// The journal: one file a run, kJournalName, for what many short-lived processes have to say (the
// steps of a build: a recording of its own each would cost more than they do). It is entries and
// nothing else. Each is appended whole by one writev on a descriptor opened with O_APPEND,
// committed from the start; a writer that is killed inside it, or finds no more room, leaves a cut
// one, and others go on behind it. Every entry holds the pid of the process that it is about.
inline constexpr char kJournalName[] = "build.journal";

// A ring: this head, then ring_records records. The newest records survive.
struct RingHead {
    std::uint32_t tid;  // 0: free
    std::uint32_t reserved;
    std::uint64_t next;  // records ever appended
    std::uint64_t unused[6];
};

static_assert(sizeof(RingHead) == 64);

// A hot event. `commit` is 0 while the record is being written and 1 + the low 31 bits of its
// number once whole.
struct HotRecord {
    std::uint32_t commit;
    std::uint16_t kind;
    std::uint16_t flags;
    std::uint64_t ticks;
    std::uint64_t words[6];
};

static_assert(sizeof(HotRecord) == 64 && offsetof(HotRecord, ticks) == 8);

// Kinds of hot records. Numbers are for ever.
enum class HotKind : std::uint16_t {
    // words: function, stream, gridX | gridY << 32, gridZ | shared bytes << 32, block (21 bits
    // each,
    // X lowest), mark | site << 32
    launch = 1,
    // words: graph, stream, 0, 0, 0, mark | site << 32
    graph_launch = 2,
    // The host has waited: what was launched before is done. words: stream or context, WaitedFor,
    // ticks when it began to wait, contexts that the process has made so far
    waited = 3,
    // A call of the driver failed. words: error, stream (of a launch), function or graph, which
    // call
    // (its row in the shim), 1: it is the launch before it, which the driver refused
    call_failed = 4,
};

enum class WaitedFor : std::uint64_t { stream = 0, context = 1 };

// HotRecord::flags of launches.
inline constexpr std::uint16_t kCapturing = 1;  // into a graph: not executed
// 2 and 4 are not given.
inline constexpr std::uint16_t kUndated = 8;  // ticks are an earlier launch's of the same thread
                                              // (shim/cuda/launches.h): it was later than that, and
                                              // before the ring's next record without this flag

// Streams by number, in launches: the default one, and each thread's own default one.
inline constexpr std::uint64_t kLegacyStream = 1;     // CU_STREAM_LEGACY
inline constexpr std::uint64_t kPerThreadStream = 2;  // CU_STREAM_PER_THREAD

// A profile: PID.prof beside the recording, with CUDIAG_PROFILE. The same kind of file with a
// larger log and without rings.
inline constexpr char kProfileSuffix[] = ".prof";

// What the GPU did, as CUPTI told it. Times are CUPTI's own: nanoseconds since 1970, or, after a
// client of CUPTI asked for that, ticks (below kFirstTime).
struct DeviceRecord {
    std::uint64_t begin, end;
    std::uint64_t bytes;  // of a copy or a fill
    std::uint32_t name;   // of a kernel: profile_name's index; of a copy CUpti_ActivityMemcpyKind
    std::uint32_t correlation;  // the same of all that one call made; later calls have higher ones
    std::uint32_t stream;       // CUPTI's number
    std::uint32_t device;
    std::uint32_t blocks;   // of a kernel's grid, UINT32_MAX: as many or more
    std::uint32_t threads;  // of a block
    std::uint16_t registers;
    std::uint16_t kind;  // DeviceKind
    std::uint32_t shared_bytes;
};

enum class DeviceKind : std::uint16_t { kernel = 0, copy = 1, fill = 2 };

inline constexpr std::uint64_t kFirstTime = std::uint64_t{1} << 60;  // ns: the year 2006
static_assert(sizeof(DeviceRecord) == 56 && std::is_trivially_copyable_v<DeviceRecord>);

// One step of an optimizer. Behind the window not every step is written in a long run, but then two
// in a row, so that the time from one to the next is known.
struct StepRecord {
    std::uint32_t optimizer;                        // its index
    std::uint32_t profiled;                         // 1: CUPTI recorded
    std::uint64_t number;                           // of this optimizer's steps, from 0
    std::uint64_t begin, end;                       // on the host, ns since 1970
    std::uint64_t launches_before, launches_after;  // of the process, so far
    // In the step, on any thread: calls that load code or look it up, and that allocate device
    // memory, and the ns that they took.
    std::uint64_t loads, loading, allocations, allocating;
};

static_assert(sizeof(StepRecord) == 80 && std::is_trivially_copyable_v<StepRecord>);

// What a stream has finished, with CUDIAG_TRACK=1: `finished` is written by the GPU itself, after
// each launch, with that launch's mark. A slot with launched == 0 is free. Of a thread's own
// default stream the high half of `stream` is the thread's id.
struct ProgressSlot {
    std::uint64_t context;
    std::uint64_t stream;
    std::uint32_t launched;  // the newest mark
    std::uint32_t finished;
    std::uint64_t reserved;
};

inline constexpr std::size_t kProgressSlots = kProgressBytes / sizeof(ProgressSlot);
static_assert(sizeof(ProgressSlot) == 32);

}  // namespace cudiag
