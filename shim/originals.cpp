#include "shim/originals.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "shim/loaded_object.h"

namespace cudiag {
namespace {

Originals found;
bool looked = false;
bool complete = false;

struct Query {
    const char* name;
    void* address;
    bool passed_us;  // only objects behind ours in the search order, as RTLD_NEXT
    bool only_behind;
};

int search_object(struct dl_phdr_info* info, size_t /*size*/, void* data) {
    auto& query = *static_cast<Query*>(data);
    if (holds_this_code(*info)) {
        query.passed_us = true;
        return 0;
    }
    if (query.only_behind && !query.passed_us) {
        return 0;
    }
    query.address = exported_address(*info, query.name);
    return query.address != nullptr ? 1 : 0;
}

void* search(const char* name, bool only_behind) {
    Query query{name, nullptr, false, only_behind};
    (void)dl_iterate_phdr(search_object, &query);
    return query.address;
}

}  // namespace

const Originals& originals() {
    return __atomic_load_n(&looked, __ATOMIC_ACQUIRE) ? found : originals_with_loader();
}

const Originals& originals_with_loader() {
    if (__atomic_load_n(&complete, __ATOMIC_ACQUIRE)) {
        return found;
    }
    bool all = true;
    // Two threads may do this at once; both find the same.
#define CUDIAG_ORIGINAL(name, result, parameters)                                                  \
    if (found.name == nullptr) {                                                                   \
        __atomic_store_n(&found.name, reinterpret_cast<decltype(found.name)>(search(#name, true)), \
                         __ATOMIC_RELEASE);                                                        \
        all = all && found.name != nullptr;                                                        \
    }
#include "shim/originals.def"
#undef CUDIAG_ORIGINAL
    __atomic_store_n(&looked, true, __ATOMIC_RELEASE);
    __atomic_store_n(&complete, all, __ATOMIC_RELEASE);
    return found;
}

void* find_symbol(const char* name) {
    return search(name, false);
}

}  // namespace cudiag
