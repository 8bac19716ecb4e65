#include "shim/native_exception.h"

#include <link.h>
#include <string.h>

#include "record/keep_errno.h"
#include "record/writer.h"
#include "shim/forks.h"
#include "shim/loaded_object.h"
#include "shim/modules.h"
#include "shim/session.h"

namespace cudiag {
namespace {

// std::exception_ptr as libstdc++ has it (<bits/exception_ptr.h>): one pointer, returned in memory,
// since it has a destructor. It stays held: the process ends.
struct ExceptionPointer {
    void* thrown;

    ExceptionPointer() = default;

    ExceptionPointer(const ExceptionPointer& other) : thrown{other.thrown} {}

    ExceptionPointer& operator=(const ExceptionPointer&) = delete;

    ~ExceptionPointer() {}  // NOLINT(modernize-use-equals-default): a trivial one changes the ABI
};

// What is asked of the libstdc++ that called (GLIBCXX_3.4.15, CXXABI_1.3).
struct Library {
    uintptr_t caller;
    ExceptionPointer (*current_exception)();
    void* (*current_type)();  // std::type_info*
    // __class_type_info::__do_catch, as the personality routine asks it: is the thrown type this
    // one, or derived from it? Then the pointer is moved to that base.
    bool (*is_caught_by)(const void* caught, const void* type, void** thrown, unsigned outer);
    void* std_exception;  // typeid(std::exception)
};

int look(struct dl_phdr_info* info, size_t /*size*/, void* data) {
    auto& library = *static_cast<Library*>(data);
    if (!holds_address(*info, library.caller)) {
        return 0;
    }
    const auto find = [&]<class Function>(Function& to, const char* name) {
        to = reinterpret_cast<Function>(exported_address(*info, name));
    };
    find(library.current_exception, "_ZSt17current_exceptionv");
    find(library.current_type, "__cxa_current_exception_type");
    find(library.is_caught_by,
         "_ZNK10__cxxabiv117__class_type_info10__do_catchEPKSt9type_infoPPvj");
    library.std_exception = exported_address(*info, "_ZTISt9exception");
    return 1;
}

// std::type_info: its table of functions, then the mangled name, which a '*' before it tells to be
// compared by address.
const char* name_of(const void* type) {
    const char* const name = static_cast<const char* const*>(type)[1];
    return name != nullptr && *name == '*' ? name + 1 : name;
}

// The third function of std::exception's table, behind two destructors (Itanium C++ ABI).
const char* what_of(const void* exception) {
    constexpr size_t kWhat = 2;
    using What = const char*(const void*);
    auto* const* const table = *static_cast<What* const* const*>(exception);
    return table[kWhat](exception);
}

}  // namespace

void note_native_exception(uintptr_t caller) {
    const KeepErrno keep;
    const SessionState state = session_state();
    // A fork child may hold a lock of the loader's that nobody will ever release.
    const bool may = state == SessionState::open ||
                     (state == SessionState::idle && !is_fork_child() && has_cuda_library());
    if (!may || in_vfork_child()) {
        return;
    }
    Library library{};
    library.caller = caller;
    if (dl_iterate_phdr(look, &library) == 0 || library.current_exception == nullptr ||
        library.current_type == nullptr || library.is_caught_by == nullptr ||
        library.std_exception == nullptr) {
        return;
    }
    const void* const type = library.current_type();
    if (type == nullptr || !open_session()) {
        return;
    }
    const char* text = "";
    void* thrown = library.current_exception().thrown;
    if (thrown != nullptr && library.is_caught_by(library.std_exception, type, &thrown, 1)) {
        const char* const what = what_of(thrown);
        text = what != nullptr ? what : "";
    }
    constexpr size_t kLongest = 8192;
    const FieldValue fields[] = {FieldValue::of(Field::type, name_of(type)),
                                 FieldValue::of(Field::text, text, strnlen(text, kLongest))};
    (void)note(EntryKind::native_exception, fields, 2);
}

}  // namespace cudiag
