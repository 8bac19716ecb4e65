// What follows from a LoaderConfig for the search: which glibc's rules hold, which entries of
// ld.so.cache fit.
#pragma once

#include "diagnose/loader/ld_cache.h"
#include "diagnose/loader/search.h"

namespace cudiag {

// An unknown version counts as a current one.
bool glibc_at_least(const LoaderConfig& config, int minor);

// The subdirectories tls/, haswell/, … and their combinations, which glibc 2.37 gave up.
bool has_legacy_hwcaps(const LoaderConfig& config);

CacheTaste cache_taste(const LoaderConfig& config);

}  // namespace cudiag
