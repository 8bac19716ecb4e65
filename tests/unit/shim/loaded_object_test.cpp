#include "shim/loaded_object.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <string.h>

#include <string>

namespace cudiag {
namespace {

struct Query {
    const char* object;  // its path ends so
    const char* symbol;
    void* address = nullptr;
    std::string soname;
};

Query ask(const char* object, const char* symbol) {
    Query query{object, symbol, nullptr, {}};
    (void)dl_iterate_phdr(
        [](struct dl_phdr_info* info, size_t /*size*/, void* data) {
            auto& wanted = *static_cast<Query*>(data);
            const std::string path = info->dlpi_name;
            const std::string end = wanted.object;
            if (path.size() < end.size() || path.substr(path.size() - end.size()) != end) {
                return 0;
            }
            wanted.address = exported_address(*info, wanted.symbol);
            wanted.soname = soname_of(*info) == nullptr ? "" : soname_of(*info);
            return 1;
        },
        &query);
    return query;
}

TEST(LoadedObjectTest, FindsWhatDlsymFinds) {
    void* libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(libc, nullptr);
    for (const char* name : {"dlerror", "_exit", "abort", "execl", "fexecve", "sigaction", "wait4",
                             "waitid", "quick_exit", "environ"}) {
        // By default version, as a lookup without a version does it.
        EXPECT_EQ(ask("/libc.so.6", name).address, dlsym(libc, name)) << name;
    }
    (void)dlclose(libc);
}

TEST(LoadedObjectTest, DoesNotFindWhatIsNotExported) {
    EXPECT_EQ(ask("/libc.so.6", "a_function_that_nobody_has").address, nullptr);
    EXPECT_EQ(ask("/libc.so.6", "").address, nullptr);
    EXPECT_EQ(ask("/libstdc++.so.6", "dlerror").address, nullptr);  // only wanted there
}

TEST(LoadedObjectTest, KnowsTheNameOfALibrary) {
    EXPECT_EQ(ask("/libc.so.6", "abort").soname, "libc.so.6");
}

TEST(LoadedObjectTest, AnAddressLiesInOneObjectOnly) {
    int holders = 0;
    int holders_of_this_code = 0;

    struct Counts {
        int* holders;
        int* ours;
    } counts{&holders, &holders_of_this_code};

    (void)dl_iterate_phdr(
        [](struct dl_phdr_info* info, size_t /*size*/, void* data) {
            const auto& to = *static_cast<Counts*>(data);
            *to.holders += holds_address(*info, reinterpret_cast<uintptr_t>(&ask)) ? 1 : 0;
            *to.ours += holds_this_code(*info) ? 1 : 0;
            return 0;
        },
        &counts);
    EXPECT_EQ(holders, 1);
    EXPECT_EQ(holders_of_this_code, 1);
}

}  // namespace
}  // namespace cudiag
