#include "shim/cuda/device_fields.h"

#include <string.h>

#include "shim/cuda/asked_driver.h"
#include "shim/modules.h"

namespace cudiag {
namespace {

// CUdevice_attribute (cuda.h): limits on which launches fail.
constexpr int kDeviceLimits[] = {1 /* threads a block */,
                                 2,
                                 3,
                                 4 /* block */,
                                 5,
                                 6,
                                 7 /* grid */,
                                 8 /* shared memory a block */,
                                 12 /* registers a block */,
                                 16 /* multiprocessors */,
                                 75,
                                 76 /* compute capability */,
                                 97 /* shared memory a block at most, if asked for */};

// The current one; where there is none yet (code is loaded before a context is made), the only one.
int device_in_question() {
    const AskedDriver& driver = asked_driver();
    int device = -1;
    if (driver.cuCtxGetDevice != nullptr && driver.cuCtxGetDevice(&device) == 0) {
        return device;
    }
    int count = 0;
    const bool only =
        driver.cuDeviceGetCount != nullptr && driver.cuDeviceGetCount(&count) == 0 && count == 1;
    return only ? 0 : -1;
}

}  // namespace

uint64_t unsigned_of(int number) {
    return static_cast<uint64_t>(static_cast<unsigned>(number));
}

uint64_t limit_of(int attribute, int value) {
    return unsigned_of(attribute) << 32 | unsigned_of(value);
}

// Of the current device, whose name is put into `name`; its number, or -1.
int add_device(Fields& fields, char* name, int size) {
    const AskedDriver& driver = asked_driver();
    const int device = device_in_question();
    if (device < 0) {
        return -1;
    }
    fields.add(FieldValue::of(Field::device_ordinal, unsigned_of(device)));
    if (driver.cuDeviceGetName != nullptr && driver.cuDeviceGetName(name, size, device) == 0) {
        fields.add(FieldValue::of(Field::value, name, strnlen(name, static_cast<size_t>(size))));
    }
    for (const int attribute : kDeviceLimits) {
        int value = 0;
        if (driver.cuDeviceGetAttribute != nullptr &&
            driver.cuDeviceGetAttribute(&value, attribute, device) == 0) {
            fields.add(FieldValue::of(Field::limit, limit_of(attribute, value)));
        }
    }
    return device;
}

// The file in which the code stands. Where it was given in memory of no file, there is none.
void add_code(Fields& fields, uint64_t image, char* path, size_t size) {
    uint64_t offset = 0;
    if (image != 0 && module_holding(image, path, size, &offset)) {
        fields.add(FieldValue::of(Field::path, path));
        fields.add(FieldValue::of(Field::code_offset, offset));
    }
}

}  // namespace cudiag
