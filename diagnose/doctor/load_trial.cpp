#include "diagnose/doctor/load_trial.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "diagnose/build/words.h"
#include "diagnose/elf/elf_file.h"
#include "diagnose/loader/case.h"
#include "diagnose/loader/dry_run.h"
#include "diagnose/packages/databases.h"
#include "diagnose/packages/requirements.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

Module module_of(const std::string& path) {
    Module module;
    module.path = path;

    struct stat status {};

    if (stat(path.c_str(), &status) == 0) {
        module.device = status.st_dev;
        module.inode = status.st_ino;
    }
    return module;
}

// dlerror()'s text for the first thing that a dry run missed: libraries before versions before
// symbols, as ld.so itself goes.
std::string error_of(const DryRun& run) {
    if (!run.missing.empty()) {
        return run.missing.front() + ": cannot open shared object file: No such file or directory";
    }
    if (!run.version_errors.empty()) {
        return run.version_errors.front();
    }
    if (!run.failure.empty()) {
        return run.failure;
    }
    if (!run.undefined.empty()) {
        const std::string& text = run.undefined.front();
        const auto first = text.find('|');
        const auto second = text.find('|', first + 1);
        const std::string version = text.substr(first + 1, second - first - 1);
        return fmt::format("{}: undefined symbol: {}{}", text.substr(second + 1),
                           text.substr(0, first), version.empty() ? "" : ", version " + version);
    }
    return {};
}

// `before` are loaded first, each with what it needs only after the last of them; `there` is all
// that is mapped when the load begins, in its order.
LoadTrial trial_of(const DoctorFacts& facts, const std::string& file,
                   std::vector<std::string> before, const std::vector<Module>& there) {
    const LoadState state = load_state_of(facts.process(), there);
    const DryRunChange change{.ld_library_path = state.ld_library_path,
                              .keep_mapped = true,
                              .preload_first = std::move(before),
                              .drop_mapped = {},
                              .glibc_tunables = {},
                              .symbols = true};
    const DryRun run = dry_run(state, file, change);
    LoadTrial trial;
    trial.ran = run.ran;
    trial.why_not = run.why;
    trial.error = error_of(run);
    trial.problems = run.missing.size() + run.version_errors.size() + run.undefined.size() +
                     (run.failure.empty() ? 0 : 1);
    trial.modules.push_back(module_of(state.executable));
    for (const std::string& mapped : run.mapped) {
        const std::string path = mapped.substr(mapped.find('|') + 1);
        if (!path.empty() && path.front() == '/') {
            trial.modules.push_back(module_of(path));
        }
    }
    return trial;
}

// What `import torch` has loaded before its _C.
std::vector<std::string> loaded_before(const TorchInstall& torch) {
    std::vector<std::string> files;
    const std::string global = torch.directory + "/lib/libtorch_global_deps.so";
    std::error_code error;
    if (fs::exists(global, error)) {
        files.push_back(global);
    }
    files.insert(files.end(), torch.preloads.begin(), torch.preloads.end());
    return files;
}

bool is_linked_with_torch(const std::string& file) {
    const ElfRead read = read_elf(file);
    return read.file && std::any_of(read.file->needed.begin(), read.file->needed.end(),
                                    [](const std::string& name) {
                                        return name.rfind("libc10", 0) == 0 ||
                                               name.rfind("libtorch", 0) == 0;
                                    });
}

bool can_be_imported(const PythonEnvironment& python, const std::string& file) {
    const std::string name = base_name(file);
    const auto dot = name.find('.');
    return dot != std::string::npos &&
           std::find(python.extension_suffixes.begin(), python.extension_suffixes.end(),
                     name.substr(dot)) != python.extension_suffixes.end();
}

std::vector<Extension> of_packages(const DoctorFacts& facts) {
    std::vector<Extension> extensions;
    std::set<std::string> seen;
    const std::string torch_inside = facts.torch.directory + "/";
    for (const std::string& directory : facts.python.packages) {
        for (const Package& package : pip_packages(directory)) {
            if (package.name == "torch" || !requirement_on(package, "torch")) {
                continue;
            }
            for (const ListedFile& file : pip_files(package)) {
                if (file.path.size() > 3 &&
                    file.path.compare(file.path.size() - 3, 3, ".so") == 0 &&
                    file.path.rfind(torch_inside, 0) != 0 &&
                    can_be_imported(facts.python, file.path) && is_linked_with_torch(file.path) &&
                    seen.insert(file.path).second) {
                    Extension extension;
                    extension.path = file.path;
                    extension.package = package.name + " " + package.version;
                    extensions.push_back(std::move(extension));
                }
            }
        }
    }
    return extensions;
}

// Do its build's include paths name this torch? Then torch's next build of that name gives ninja
// the same commands, and ninja keeps the file: it knows nothing of headers that -isystem led to.
bool built_by_this_torch(const std::string& build_file, const TorchInstall& torch) {
    constexpr std::size_t kLargest = std::size_t{1} << 20;
    return file_text(build_file, kLargest).find(torch.directory + "/include") != std::string::npos;
}

std::vector<Extension> of_cache(const DoctorFacts& facts) {
    std::vector<Extension> extensions;
    std::error_code error;
    for (const auto& build : fs::directory_iterator(facts.tools.extensions_root, error)) {
        const std::string directory = build.path().string();
        if (!fs::exists(directory + "/build.ninja", error)) {
            continue;
        }
        for (const std::string& file : entries_ending(directory, ".so")) {
            if (is_linked_with_torch(file)) {
                Extension extension;
                extension.path = file;
                extension.cached = true;
                extension.built_by_this_torch =
                    built_by_this_torch(directory + "/build.ninja", facts.torch);
                extensions.push_back(std::move(extension));
            }
        }
    }
    std::sort(extensions.begin(), extensions.end(),
              [](const Extension& a, const Extension& b) { return a.path < b.path; });
    return extensions;
}

}  // namespace

Process process_to_be(const PythonEnvironment& python, const Variables& environment) {
    Process process;
    std::error_code error;
    process.exe = python.executable;
    process.argv = {python.path};
    process.cwd = fs::current_path(error).string();
    process.environment = environment;
    process.end = EndHow::exit;  // the rules explain failures: of one that has not been yet
    process.end_status = 1;
    // Where it looks for packages is known; the rules look where this variable says.
    std::string& packages = process.environment["PYTHONPATH"];
    packages.clear();
    for (const std::string& directory : python.packages) {
        packages += (packages.empty() ? "" : ":") + directory;
    }
    return process;
}

LoadTrial trial_of_import(const DoctorFacts& facts) {
    return facts.torch.extension.empty()
               ? LoadTrial{}
               : trial_of(facts, facts.torch.extension, loaded_before(facts.torch), {});
}

LoadTrial trial_alone(const DoctorFacts& facts, const std::string& file) {
    return trial_of(facts, file, {}, {});
}

std::vector<Extension> extensions_of(const DoctorFacts& facts) {
    std::vector<Extension> extensions = of_packages(facts);
    for (Extension& cached : of_cache(facts)) {
        extensions.push_back(std::move(cached));
    }
    constexpr std::size_t kMost = 256;  // what is more than any environment has
    extensions.resize(std::min(extensions.size(), kMost));
    if (extensions.empty() || !facts.import_trial.works()) {
        return extensions;
    }
    // All at once first: that costs what one costs, and mostly all is well.
    const std::vector<Module>& mapped = facts.import_trial.modules;
    std::vector<std::string> all;
    all.reserve(extensions.size());
    for (const Extension& extension : extensions) {
        all.push_back(extension.path);
    }
    const std::string last = all.back();
    all.pop_back();
    const LoadTrial together = trial_of(facts, last, all, mapped);
    for (Extension& extension : extensions) {
        extension.trial = together.works() && together.why_not.empty()
                              ? together
                              : trial_of(facts, extension.path, {}, mapped);
    }
    return extensions;
}

}  // namespace cudiag
