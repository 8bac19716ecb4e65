// Fields that tell on which device a call of the driver was made, and of which code.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shim/fields.h"

namespace cudiag {

uint64_t unsigned_of(int number);

// A value of Field::limit and Field::function_limit.
uint64_t limit_of(int attribute, int value);

// Of the current device (or the only one, before there is a context), whose name is put into `name`
// (valid until the entry is noted); its number, or -1. Asks the driver: only after calls that left
// it as it was.
int add_device(Fields& fields, char* name, int size);

// The file in which the code at this address stands. Where it was given in memory of no file, there
// is none. `path` as `name` above.
void add_code(Fields& fields, uint64_t image, char* path, size_t size);

}  // namespace cudiag
