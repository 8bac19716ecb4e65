// Marks what the shim exports; the list is exports.map.
#pragma once

#define CUDIAG_EXPORT __attribute__((visibility("default")))
