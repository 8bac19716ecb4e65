#include "shim/step_hooks.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <initializer_list>

#include "record/keep_errno.h"
#include "shim/forks.h"
#include "shim/originals.h"
#include "shim/profile.h"

// NOLINTNEXTLINE(readability-identifier-naming): a name of step_hooks.S
extern "C" const char cudiag_step_hooks[];

namespace cudiag {
namespace {

// CPython's C API, of the stable ABI since 3.2 (Include/*.h). Objects are opaque.
struct Api {
    int (*add_pending_call)(int (*)(void*), void*);
    void* (*compile)(const char*, const char*, int);
    void* (*evaluate)(void*, void*, void*);
    void* (*builtins)();  // borrowed
    void* (*new_dictionary)();
    int (*set_item)(void*, const char*, void*);
    void* (*get_item)(void*, const char*);  // borrowed
    void* (*new_function)(void*, void*, void*);
    void* (*from_long)(long);
    long (*as_long)(void*);
    const char* (*utf8)(void*, intptr_t*);
    void (*take)(void*);
    void (*drop)(void*);
    void (*fetch_error)(void**, void**, void**);
    void (*restore_error)(void*, void*, void*);
    void (*clear_error)();
    void* none;
    void* yes;
    void* no;
};

Api python{};

// PyMethodDef (Include/methodobject.h)
struct Method {
    const char* name;
    void* (*function)(void*, void*);
    int flags;
    const char* documentation;
};

constexpr int kNoArguments = 4;  // METH_NOARGS
constexpr int kOneArgument = 8;  // METH_O

// waiting: for torch.optim; armed: a call is pending; done: nothing is left to be done.
enum class State : uint8_t { waiting = 0, armed = 1, done = 2 };

uint8_t state = static_cast<uint8_t>(State::waiting);
bool optim_is_imported = false;

template <class Function>
bool find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(find_symbol(name));
    return function != nullptr;
}

bool find_api() {
    return find(python.add_pending_call, "Py_AddPendingCall") &&
           find(python.compile, "Py_CompileString") && find(python.evaluate, "PyEval_EvalCode") &&
           find(python.builtins, "PyEval_GetBuiltins") &&
           find(python.new_dictionary, "PyDict_New") &&
           find(python.set_item, "PyDict_SetItemString") &&
           find(python.get_item, "PyDict_GetItemString") &&
           find(python.new_function, "PyCFunction_NewEx") &&
           find(python.from_long, "PyLong_FromLong") && find(python.as_long, "PyLong_AsLong") &&
           find(python.utf8, "PyUnicode_AsUTF8AndSize") && find(python.take, "Py_IncRef") &&
           find(python.drop, "Py_DecRef") && find(python.fetch_error, "PyErr_Fetch") &&
           find(python.restore_error, "PyErr_Restore") && find(python.clear_error, "PyErr_Clear") &&
           find(python.none, "_Py_NoneStruct") && find(python.yes, "_Py_TrueStruct") &&
           find(python.no, "_Py_FalseStruct");
}

void* nothing() {
    python.take(python.none);
    return python.none;
}

// An index that describe() gave, from Python.
uint32_t index_in(void* argument) {
    const long index = python.as_long(argument);
    if (index < 0) {
        python.clear_error();
        return kNoOptimizer;
    }
    return static_cast<uint32_t>(index);
}

void* before(void* /*self*/, void* argument) {
    step_begins(index_in(argument));
    return nothing();
}

void* after(void* /*self*/, void* argument) {
    step_ended(index_in(argument));
    return nothing();
}

void* describe(void* /*self*/, void* argument) {
    intptr_t size = 0;
    const char* const text = python.utf8(argument, &size);
    if (text == nullptr) {
        python.clear_error();
        return python.from_long(-1);
    }
    const uint32_t index = note_optimizer(text, static_cast<size_t>(size));
    return python.from_long(index == kNoOptimizer ? -1 : static_cast<long>(index));
}

void* end(void* /*self*/, void* /*none*/) {
    end_profile();
    return nothing();
}

// Live as long as the interpreter may call them.
Method methods[] = {{"before", before, kOneArgument, nullptr},
                    {"after", after, kOneArgument, nullptr},
                    {"describe", describe, kOneArgument, nullptr},
                    {"end", end, kNoArguments, nullptr}};

bool fill(void* names) {
    bool good = python.set_item(names, "__builtins__", python.builtins()) == 0;
    for (Method& method : methods) {
        void* const function = python.new_function(&method, nullptr, nullptr);
        good = good && function != nullptr && python.set_item(names, method.name, function) == 0;
        if (function != nullptr) {
            python.drop(function);
        }
    }
    return good;
}

// Is nothing left to be done? With the GIL, on the main thread.
bool run_script() {
    constexpr int kFile = 257;  // Py_file_input (Include/compile.h)
    void* const names = python.new_dictionary();
    if (names == nullptr) {
        return true;
    }
    void* const code = python.compile(cudiag_step_hooks, "<cudiag>", kFile);
    void* value = nullptr;
    if (code != nullptr && fill(names)) {
        value = python.evaluate(code, names, names);
    }
    void* const result = value == nullptr ? nullptr : python.get_item(names, "result");
    bool done = true;
    if (result == nullptr) {
        note_no_steps("the hooks for the optimizers' steps could not be set");
    } else if (result == python.no) {
        done = false;
    } else if (result != python.yes) {
        intptr_t size = 0;
        const char* const why = python.utf8(result, &size);
        note_no_steps(why == nullptr ? "" : why);
    }
    for (void* object : {value, code, names}) {
        if (object != nullptr) {
            python.drop(object);
        }
    }
    python.clear_error();
    return done;
}

// The pending call. Whatever happens, the program goes on: another result than 0 is an exception.
int run_pending(void* /*argument*/) {
    const KeepErrno keep;
    bool done = true;
    if (profile_is_wanted() && !in_vfork_child()) {
        void* type = nullptr;
        void* value = nullptr;
        void* traceback = nullptr;
        python.fetch_error(&type, &value, &traceback);
        done = run_script();
        python.restore_error(type, value, traceback);
    }
    __atomic_store_n(&state, static_cast<uint8_t>(done ? State::done : State::waiting),
                     __ATOMIC_RELEASE);
    return 0;
}

}  // namespace

void arm_step_hooks() {
    auto expected = static_cast<uint8_t>(State::waiting);
    if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != expected || !profile_is_wanted()) {
        return;
    }
    const KeepErrno keep;
    if (in_vfork_child() ||
        !__atomic_compare_exchange_n(&state, &expected, static_cast<uint8_t>(State::armed), false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return;
    }
    if ((python.add_pending_call == nullptr && !find_api()) ||
        python.add_pending_call(run_pending, nullptr) != 0) {
        python.add_pending_call = nullptr;
        __atomic_store_n(&state, static_cast<uint8_t>(State::waiting), __ATOMIC_RELEASE);
    }
}

void note_open_for_step_hooks(const char* path) {
    if (!profile_is_wanted() ||
        __atomic_load_n(&state, __ATOMIC_RELAXED) != static_cast<uint8_t>(State::waiting)) {
        return;
    }
    if (__atomic_load_n(&optim_is_imported, __ATOMIC_RELAXED)) {
        arm_step_hooks();
    } else if (strstr(path, "/torch/optim/") != nullptr) {
        __atomic_store_n(&optim_is_imported, true, __ATOMIC_RELAXED);
    }
}

}  // namespace cudiag
