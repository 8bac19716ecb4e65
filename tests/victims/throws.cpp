/* throws WAY [quiet]: an exception that nobody catches, in one of the ways in which that can be;
 * before it, if not quiet, a library is looked for in vain, so that there is a recording. "abort":
 * no exception at all; "handled": one is being handled, and something else ends the program. */
#include <dlfcn.h>
#include <stdlib.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

struct Other {
    virtual ~Other() = default;
    int number = 7;
};

namespace far::away {
struct Failure : Other, virtual std::exception {
    const char* what() const noexcept override { return "told by a base that is not the first"; }
};
}  // namespace far::away

struct Hidden : private std::runtime_error {
    Hidden() : std::runtime_error("private") {}
};

static void rethrow() {
    std::exception_ptr kept;
    try {
        throw std::invalid_argument("kept and thrown again");
    } catch (...) {
        kept = std::current_exception();
    }
    std::rethrow_exception(kept);
}

static void not_to_throw() noexcept {
    throw std::out_of_range("through noexcept");
}

int main(int count, char** arguments) {
    const std::string way = count > 1 ? arguments[1] : "";
    if (count < 3 && dlopen("libthis-is-absent.so", RTLD_NOW) == nullptr) {
        dlerror();
    }
    if (way == "plain") throw std::runtime_error("two\nlines");
    if (way == "base") throw far::away::Failure();
    if (way == "thread") std::thread([] { throw std::logic_error("in a thread"); }).join();
    if (way == "rethrown") std::thread(rethrow).join();
    if (way == "noexcept") not_to_throw();
    if (way == "number") throw 42;
    if (way == "pointer") throw static_cast<const std::exception*>(nullptr);
    if (way == "hidden") throw Hidden();
    if (way == "nothing") std::terminate();
    if (way == "handler") {
        std::set_terminate([] { abort(); });
        throw std::runtime_error("its own handler");
    }
    if (way == "handled") {
        try {
            throw std::runtime_error("handled");
        } catch (const std::exception&) {
            abort();
        }
    }
    abort();
}
