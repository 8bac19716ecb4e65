#include "shim/cuda/asked_driver.h"

#include <link.h>

#include "shim/loaded_object.h"

namespace cudiag {
namespace {

AskedDriver functions{};

}  // namespace

const AskedDriver& asked_driver() {
    return functions;
}

AskedDriver asked_driver_in(const dl_phdr_info& libcuda) {
    return {
#define CUDIAG_ASKED(name, parameters) \
    reinterpret_cast<decltype(AskedDriver::name)>(exported_address(libcuda, #name)),
#include "shim/cuda/asked_driver.def"
#undef CUDIAG_ASKED
    };
}

void set_asked_driver(const AskedDriver& found) {
#define CUDIAG_ASKED(name, parameters) \
    __atomic_store_n(&functions.name, found.name, __ATOMIC_RELEASE);
#include "shim/cuda/asked_driver.def"
#undef CUDIAG_ASKED
}

}  // namespace cudiag
