#include "diagnose/loader/rules.h"

namespace cudiag {
namespace {

using LoaderRule = std::optional<Finding> (*)(const LoaderCase&);

constexpr LoaderRule kLoaderRules[] = {
    loader_missing_driver, loader_wrong_architecture, loader_static_tls,   loader_glibc_too_old,
    package_broken,        loader_libstdcxx_too_old,  loader_abi_mismatch, loader_symbol_version,
    loader_missing_library};

}  // namespace

std::optional<Finding> loader_finding(const LoaderCase& c) {
    for (const LoaderRule rule : kLoaderRules) {
        if (auto finding = rule(c)) {
            return finding;
        }
    }
    return std::nullopt;
}

}  // namespace cudiag
