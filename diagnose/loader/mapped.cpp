#include "diagnose/loader/mapped.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "diagnose/elf/elf_file.h"
#include "diagnose/knowledge/cuda.h"
#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/case.h"
#include "diagnose/loader/file_version.h"
#include "diagnose/packages/owner.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// What became of a file since it was mapped. Without an inode in the recording nothing is said.
std::string since_mapped(const Module& module) {
    struct stat about {};

    if (stat(module.path.c_str(), &about) != 0) {
        return "gone";
    }
    const bool known = module.inode != 0;
    return known && (about.st_ino != module.inode || about.st_dev != module.device) ? "replaced"
                                                                                    : "";
}

MappedDriver driver_of(const Process& process, const std::vector<Module>& modules) {
    MappedDriver driver;
    for (const Module& module : modules) {
        if (library_family(file_name(module.path)) == "cuda") {
            driver.path = module.path;
        }
    }
    if (process.cuda_driver && !process.cuda_driver->path.empty()) {
        driver.path = process.cuda_driver->path;
    }
    std::error_code error;
    const auto real = std::filesystem::canonical(driver.path, error);
    driver.release = driver_release_in(file_name(error ? driver.path : real.string()));
    driver.cuda = process.cuda_driver && process.cuda_driver->version != 0
                      ? cuda_release_of(process.cuda_driver->version)
                      : cuda_of_driver(driver.release);
    return driver;
}

}  // namespace

std::vector<MappedLibrary> mapped_libraries(const std::vector<Module>& modules) {
    std::map<std::string, std::vector<std::string>> users;  // by SONAME
    std::map<std::string, std::string> sonames;             // by path
    for (const Module& module : modules) {
        const ElfRead read = read_elf(module.path);
        if (!read.file) {
            continue;
        }
        sonames[module.path] = read.file->soname;
        for (const std::string& needed : read.file->needed) {
            users[needed].push_back(module.path);
        }
    }
    std::map<std::string, int> copies;
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
    std::vector<MappedLibrary> libraries;
    for (const Module& module : modules) {
        const std::string family = library_family(file_name(module.path));
        if (family.empty() ||
            (module.inode != 0 && !seen.insert({module.device, module.inode}).second)) {
            continue;
        }
        ++copies[family];
        MappedLibrary library;
        library.path = module.path;
        library.family = family;
        library.soname = sonames[module.path];
        library.since = since_mapped(module);
        if (library.since.empty()) {
            library.version = file_version(module.path);
            if (const auto owner = owner_of(module.path)) {
                library.package =
                    say("{} {} ({})", owner->name, owner->version, name_of(owner->manager));
            }
        }
        const std::string wanted = library.soname.empty() ? file_name(module.path) : library.soname;
        library.needed_by = users[wanted];
        if (const LibraryRelease* release = library_release(wanted)) {
            library.cuda = release->cuda;
        }
        libraries.push_back(std::move(library));
    }
    for (MappedLibrary& library : libraries) {
        library.twice = copies[library.family] > 1;
    }
    return libraries;
}

std::vector<ProcessLibraries> libraries_of(const Facts& facts) {
    std::vector<ProcessLibraries> all;
    for (const Process& process : facts.processes) {
        if (process.snapshots.empty()) {
            continue;
        }
        const std::vector<Module>& modules = process.snapshots.rbegin()->second;
        ProcessLibraries one{.pid = process.pid,
                             .argv = process.argv,
                             .driver = driver_of(process, modules),
                             .libraries = mapped_libraries(modules)};
        one.libraries.erase(
            std::remove_if(one.libraries.begin(), one.libraries.end(),
                           [&](const MappedLibrary& each) { return each.path == one.driver.path; }),
            one.libraries.end());
        if (!one.libraries.empty() || !one.driver.path.empty()) {
            all.push_back(std::move(one));
        }
    }
    return all;
}

}  // namespace cudiag
