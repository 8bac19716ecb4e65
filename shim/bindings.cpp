#include "shim/bindings.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/keep_errno.h"
#include "shim/cuda/runtime_errors.h"
#include "shim/loaded_object.h"
#include "shim/nccl/calls.h"

namespace cudiag {
namespace {

constexpr size_t kFamilies = 2;

const Family& family(size_t number) {
    return number == 0 ? nccl_functions() : runtime_functions();
}

// A library that is there; `base` as dl_iterate_phdr gives it.
struct Copy {
    bool used;
    bool seen;
    uintptr_t base;
};

// Written by the thread that holds `busy`. What other threads read is Family::real alone.
Copy copies[kFamilies][kCopies];
size_t looked_at = 0;  // objects, from the first of the list on
bool busy = false;

// Of the loader: objects ever added and removed.
struct Counts {
    unsigned long long added, removed;
};

Counts last;

int read_counts(struct dl_phdr_info* info, size_t size, void* data) {
    if (size >= offsetof(dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
        *static_cast<Counts*>(data) = {info->dlpi_adds, info->dlpi_subs};
    }
    return 1;
}

void*& real_of(const Family& of, size_t copy, size_t function) {
    return of.real[copy * of.functions + function];
}

void* load(void* const* from) {
    return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

bool begins(const char* text, const char* beginning) {
    return text != nullptr && strncmp(text, beginning, strlen(beginning)) == 0;
}

struct Pass {
    size_t number;  // of the object
    size_t first;   // that is new
    bool learnt;    // a library came
    bool alone;     // no other thread runs, and all that is there is relocated
};

// Two names of one address have one signature, and nothing tells which: neither is replaced.
bool has_twin(const Family& of, size_t copy, size_t function) {
    for (size_t each = 0; each < of.functions; ++each) {
        if (each != function && load(&real_of(of, copy, each)) == real_of(of, copy, function)) {
            return true;
        }
    }
    return false;
}

// False if it has none of the functions: a plug-in of NCCL's bears nearly its name.
bool learn(const struct dl_phdr_info& info, size_t number, size_t copy) {
    const Family& of = family(number);
    bool any = false;
    for (size_t function = 0; function < of.functions; ++function) {
        void* const address = exported_address(info, of.name(function));
        __atomic_store_n(&real_of(of, copy, function), address, __ATOMIC_RELEASE);
        any = any || address != nullptr;
    }
    copies[number][copy] = {.used = any, .seen = any, .base = info.dlpi_addr};
    return any;
}

int look_for_libraries(struct dl_phdr_info* info, size_t /*size*/, void* data) {
    auto& pass = *static_cast<Pass*>(data);
    if (pass.number++ < pass.first) {
        return 0;
    }
    const char* soname = soname_of(*info);
    for (size_t number = 0; number < kFamilies; ++number) {
        if (!begins(soname, family(number).soname)) {
            continue;
        }
        Copy* unused = nullptr;
        bool known = false;
        for (Copy& copy : copies[number]) {
            if (copy.used && copy.base == info->dlpi_addr) {
                copy.seen = true;
                known = true;
            } else if (!copy.used && unused == nullptr) {
                unused = &copy;
            }
        }
        if (!known && unused != nullptr) {
            pass.learnt |= learn(*info, number, static_cast<size_t>(unused - copies[number]));
        }
    }
    return 0;
}

// A library was unloaded. Who still holds a pointer to one of its functions holds our wrapper.
void drop_unseen() {
    for (size_t number = 0; number < kFamilies; ++number) {
        const Family& of = family(number);
        for (size_t copy = 0; copy < kCopies; ++copy) {
            if (copies[number][copy].used && !copies[number][copy].seen) {
                copies[number][copy].used = false;
                for (size_t function = 0; function < of.functions; ++function) {
                    __atomic_store_n(&real_of(of, copy, function), nullptr, __ATOMIC_RELEASE);
                }
            }
        }
    }
}

struct Exporters {
    const char* name;
    size_t count;
};

int count_exporter(struct dl_phdr_info* info, size_t /*size*/, void* data) {
    auto& exporters = *static_cast<Exporters*>(data);
    exporters.count += exported_address(*info, exporters.name) != nullptr ? 1 : 0;
    return 0;
}

// The copy of which a call that ld.so has yet to bind will get the function: the only one in the
// process that has it, and the caller names that library. -1 where that is not so plain.
int copy_to_be_bound(size_t number, const char* name) {
    int only = -1;
    for (size_t copy = 0; copy < kCopies; ++copy) {
        if (copies[number][copy].used) {
            if (only >= 0) {
                return -1;
            }
            only = static_cast<int>(copy);
        }
    }
    Exporters exporters{name, 0};
    (void)dl_iterate_phdr(count_exporter, &exporters);
    return exporters.count == 1 ? only : -1;
}

// One store, which a thread that calls through the slot meanwhile sees whole.
void put(void** slot, void* value, bool read_only, bool alone) {
    if (!read_only) {
        __atomic_store_n(slot, value, __ATOMIC_RELEASE);
        return;
    }
    // ld.so relocates first and protects then. While another thread loads, that may be going on.
    if (!alone) {
        return;
    }
    const uintptr_t page = getauxval(AT_PAGESZ);
    auto* const begin =
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the page of a slot
        reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(slot) & ~(page - 1));
    if (page != 0 && mprotect(begin, page, PROT_READ | PROT_WRITE) == 0) {
        __atomic_store_n(slot, value, __ATOMIC_RELEASE);
        (void)mprotect(begin, page, PROT_READ);
    }
}

struct Caller {
    const struct dl_phdr_info* info;
    size_t number;  // of the family
    bool alone;
};

void bind(const Import& import, void* data) {
    const auto& caller = *static_cast<const Caller*>(data);
    const Family& of = family(caller.number);
    size_t function = 0;
    while (function < of.functions && strcmp(of.name(function), import.name) != 0) {
        ++function;
    }
    if (function == of.functions) {
        return;
    }
    void* const bound = load(import.slot);
    int to = -1;
    for (size_t copy = 0; bound != nullptr && copy < kCopies; ++copy) {
        if (real_of(of, copy, function) == bound) {
            to = static_cast<int>(copy);
        }
    }
    if (to < 0 && holds_address(*caller.info, reinterpret_cast<uintptr_t>(bound))) {
        to = copy_to_be_bound(caller.number, import.name);  // its own stub: not bound yet
    }
    if (to < 0) {
        return;
    }
    const auto copy = static_cast<size_t>(to);
    void* const wrapper = real_of(of, copy, function) == nullptr || has_twin(of, copy, function)
                              ? nullptr
                              : of.wrapper(copy, function);
    if (wrapper != nullptr) {
        put(import.slot, wrapper, import.read_only, caller.alone);
    }
}

int bind_object(struct dl_phdr_info* info, size_t /*size*/, void* data) {
    auto& pass = *static_cast<Pass*>(data);
    if (pass.number++ < pass.first || holds_this_code(*info)) {
        return 0;
    }
    for (size_t number = 0; number < kFamilies; ++number) {
        bool there = false;
        for (const Copy& copy : copies[number]) {
            there = there || copy.used;
        }
        if (there && needs_library(*info, family(number).soname)) {
            Caller caller{info, number, pass.alone};
            for_each_import(*info, family(number).imported, bind, &caller);
        }
    }
    return 0;
}

bool only_thread() {
    struct stat tasks {};

    constexpr nlink_t kOfNone = 2;
    // The system call: libc's own function of that name is newer than the oldest glibc.
    return syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &tasks, 0) == 0 &&
           tasks.st_nlink == kOfNone + 1;
}

bool any_copy() {
    for (const auto& of_family : copies) {
        for (const Copy& copy : of_family) {
            if (copy.used) {
                return true;
            }
        }
    }
    return false;
}

void look(const Counts& now, When when) {
    Pass libraries{0, looked_at, false, false};
    if (now.removed != last.removed) {
        libraries.first = 0;
        for (auto& of_family : copies) {
            for (Copy& copy : of_family) {
                copy.seen = false;
            }
        }
    }
    (void)dl_iterate_phdr(look_for_libraries, &libraries);
    if (now.removed != last.removed) {
        drop_unseen();
    }
    if (any_copy()) {
        Pass callers{0, libraries.learnt ? 0 : libraries.first, false,
                     when == When::at_start && only_thread()};
        (void)dl_iterate_phdr(bind_object, &callers);
    }
    looked_at = libraries.number;
    last = now;
}

}  // namespace

void rebind(When when) {
    const KeepErrno keep;
    Counts now{};
    (void)dl_iterate_phdr(read_counts, &now);
    if (now.added == last.added && now.removed == last.removed) {
        return;
    }
    if (!__atomic_exchange_n(&busy, true, __ATOMIC_ACQ_REL)) {
        look(now, when);
        __atomic_store_n(&busy, false, __ATOMIC_RELEASE);
    }
}

void* stand_in_for(const Family& of, const char* name, void* address) {
    if (address == nullptr) {
        return address;
    }
    rebind(When::later);
    for (size_t function = 0; function < of.functions; ++function) {
        if (strcmp(of.name(function), name) != 0) {
            continue;
        }
        for (size_t copy = 0; copy < kCopies; ++copy) {
            if (load(&real_of(of, copy, function)) == address && !has_twin(of, copy, function)) {
                void* const wrapper = of.wrapper(copy, function);
                return wrapper != nullptr ? wrapper : address;
            }
        }
    }
    return address;
}

void forget_rebinding() {
    __atomic_store_n(&busy, false, __ATOMIC_RELEASE);
}

}  // namespace cudiag
