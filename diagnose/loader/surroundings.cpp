#include "diagnose/loader/surroundings.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "diagnose/knowledge/knowledge.h"
#include "diagnose/loader/file_version.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

namespace fs = std::filesystem;

std::string variable(const Process& process, const char* name) {
    const auto found = process.environment.find(name);
    return found == process.environment.end() ? std::string{} : found->second;
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::size_t at = 0;
    while (at <= text.size()) {
        const auto end = std::min(text.find(separator, at), text.size());
        if (end > at) {
            parts.push_back(text.substr(at, end - at));
        }
        at = end + 1;
    }
    return parts;
}

// An ordered set of existing directories, each once however it is spelled.
class Directories {
  public:
    void add(const fs::path& directory) {
        std::error_code error;
        const fs::path real = fs::canonical(directory, error);
        if (!error && fs::is_directory(real, error) && seen_.insert(real.string()).second) {
            list_.push_back(directory.lexically_normal().string());
        }
    }

    void add_children(const fs::path& parent, const fs::path& below) {
        std::error_code error;
        std::vector<fs::path> children;
        for (const auto& child : fs::directory_iterator(parent, error)) {
            children.push_back(child.path());
        }
        std::sort(children.begin(), children.end());
        for (const fs::path& child : children) {
            add(child / below);
        }
    }

    const std::vector<std::string>& list() const { return list_; }

  private:
    std::set<std::string> seen_;
    std::vector<std::string> list_;
};

void add_prefix_sites(Directories& sites, const fs::path& prefix) {
    std::error_code error;
    for (const char* lib : {"lib", "lib64"}) {
        for (const auto& child : fs::directory_iterator(prefix / lib, error)) {
            if (child.path().filename().string().rfind("python3", 0) == 0) {
                sites.add(child.path() / "site-packages");
                sites.add(child.path() / "dist-packages");
            }
        }
    }
    sites.add(prefix / "lib/python3/dist-packages");
}

void add_toolkit(Directories& directories, const fs::path& home) {
    directories.add(home / "lib64");
    directories.add(home / "lib");
    directories.add(home / "targets/x86_64-linux/lib");
    directories.add(home / "targets/sbsa-linux/lib");
    directories.add(home / "extras/CUPTI/lib64");
    directories.add(home / "compat");
    directories.add(home / "lib64/stubs");
}

void add_toolkits(Directories& directories, const Process& process) {
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
        if (const std::string home = variable(process, name); !home.empty()) {
            add_toolkit(directories, home);
        }
    }
    std::error_code error;
    std::vector<fs::path> homes;
    for (const char* parent : {"/usr/local", "/opt"}) {
        for (const auto& child : fs::directory_iterator(parent, error)) {
            if (child.path().filename().string().rfind("cuda", 0) == 0) {
                homes.push_back(child.path());
            }
        }
    }
    // /usr/local/cuda-13.0 before /usr/local/cuda-12.4: the newest first; the link /usr/local/cuda
    // is the same directory.
    std::sort(homes.rbegin(), homes.rend());
    for (const fs::path& home : homes) {
        add_toolkit(directories, home);
    }
}

std::vector<std::string> library_directories(const Process& process,
                                             const std::vector<Module>& modules,
                                             const LoaderConfig& config,
                                             const std::vector<std::string>& searched) {
    Directories directories;
    for (const std::string& directory : searched) {
        directories.add(directory);
    }
    for (const std::string& site : site_packages_dirs(process, modules)) {
        directories.add_children(fs::path{site} / "nvidia", "lib");
        directories.add_children(site, "lib");
        std::error_code error;
        for (const auto& child : fs::directory_iterator(site, error)) {
            if (child.path().extension() == ".libs") {
                directories.add(child.path());
            }
        }
    }
    for (const std::string& directory : split(variable(process, "LD_LIBRARY_PATH"), ':')) {
        directories.add(directory);
    }
    for (const char* name : {"CONDA_PREFIX", "VIRTUAL_ENV"}) {
        if (const std::string prefix = variable(process, name); !prefix.empty()) {
            directories.add(fs::path{prefix} / "lib");
        }
    }
    for (const Module& module : modules) {
        if (!module.path.empty() && module.path.front() == '/') {
            directories.add(fs::path{module.path}.parent_path());
        }
    }
    for (const std::string& directory : config.system_dirs) {
        directories.add(directory);
    }
    add_toolkits(directories, process);
    directories.add("/usr/local/lib");
    directories.add("/usr/lib/wsl/lib");
    directories.add("/usr/lib64");
    return directories.list();
}

// "libstdc++.so" of "libstdc++.so.6".
std::string stem_of(const std::string& soname) {
    const auto so = soname.find(".so");
    return so == std::string::npos ? soname : soname.substr(0, so + 3);
}

std::string why_no_substitute(const Copy& copy, const ElfRead& read, const std::string& soname) {
    if (copy.stub) {
        return say("a stub for linking: it holds no code");
    }
    if (!read.file) {
        return read.detail;
    }
    if (!copy.fits_machine) {
        return say("built for {}", machine_name(read.file->machine, read.file->bits));
    }
    if (!copy.same_soname) {
        const LibraryRelease* release = library_release(copy.soname);
        return say("its SONAME is {}{}, not {}: another ABI",
                   copy.soname.empty() ? say("absent") : copy.soname,
                   release != nullptr && !release->cuda.empty()
                       ? fmt::format(" (CUDA {})", release->cuda)
                       : std::string{},
                   soname);
    }
    return {};
}

Copy examine(const fs::path& path, const std::string& soname) {
    Copy copy;
    copy.path = path.string();
    std::error_code error;
    copy.real_path = fs::canonical(path, error).string();
    if (error) {
        copy.real_path = copy.path;
    }
    const ElfRead read = read_elf(copy.path);
    if (read.file) {
        copy.soname = read.file->soname;
        copy.fits_machine =
            read.file->machine == host_machine() && read.file->bits == 8 * sizeof(void*);
    }
    copy.same_soname = copy.soname == soname;
    copy.named = path.filename() == soname;
    copy.stub = is_stub(copy.path);
    copy.why_not = why_no_substitute(copy, read, soname);
    if (read.file) {
        copy.version = file_version(copy.path);
    }
    return copy;
}

}  // namespace

std::vector<std::string> site_packages_dirs(const Process& process,
                                            const std::vector<Module>& modules) {
    Directories sites;
    if (const std::string prefix = variable(process, "VIRTUAL_ENV"); !prefix.empty()) {
        add_prefix_sites(sites, prefix);
    }
    // A venv is known by the path that was run (bin/python is a link), not by the executable's own.
    if (is_python(process) && !process.argv.empty() &&
        process.argv.front().find('/') != std::string::npos) {
        fs::path python{process.argv.front()};
        if (python.is_relative()) {
            python = fs::path{process.cwd} / python;
        }
        add_prefix_sites(sites, python.parent_path().parent_path());
    }
    for (const LoadFailure& failure : process.failures) {
        sites.add(site_packages_of(failure.asked));
        for (const PythonFrame& frame : failure.python) {
            sites.add(site_packages_of(frame.file));
        }
    }
    for (const Module& module : modules) {
        sites.add(site_packages_of(module.path));
    }
    for (const std::string& directory : split(variable(process, "PYTHONPATH"), ':')) {
        sites.add(directory);
    }
    if (const std::string prefix = variable(process, "CONDA_PREFIX"); !prefix.empty()) {
        add_prefix_sites(sites, prefix);
    }
    if (is_python(process)) {
        add_prefix_sites(sites, fs::path{process.exe}.parent_path().parent_path());
    }
    return sites.list();
}

bool is_python(const Process& process) {
    return fs::path{process.exe}.filename().string().rfind("python", 0) == 0;
}

std::string python_command(const Process& process) {
    if (!is_python(process)) {
        return "python3";
    }
    if (!process.argv.empty() && process.argv.front().find('/') != std::string::npos) {
        return shell_quoted(process.argv.front());
    }
    if (const std::string prefix = variable(process, "VIRTUAL_ENV"); !prefix.empty()) {
        return shell_quoted(prefix + "/bin/python");
    }
    return process.argv.empty() ? shell_quoted(process.exe) : shell_quoted(process.argv.front());
}

std::vector<Copy> find_copies(const std::string& soname, const Process& process,
                              const std::vector<Module>& modules, const LoaderConfig& config,
                              const std::vector<std::string>& searched) {
    const std::string stem = stem_of(soname);
    std::vector<Copy> copies;
    std::set<std::string> seen;
    for (const std::string& directory : library_directories(process, modules, config, searched)) {
        std::error_code error;
        std::vector<fs::path> files;
        for (const auto& file : fs::directory_iterator(directory, error)) {
            const std::string name = file.path().filename().string();
            if (name.rfind(stem, 0) == 0 &&
                (name.size() == stem.size() || name[stem.size()] == '.')) {
                files.push_back(file.path());
            }
        }
        // The wanted name first: libcudart.so, .so.12 and .so.12.4.127 are one file, and one line
        // is enough.
        std::sort(files.begin(), files.end(), [&](const fs::path& a, const fs::path& b) {
            const bool a_named = a.filename() == soname;
            const bool b_named = b.filename() == soname;
            return a_named != b_named ? a_named : a.string() < b.string();
        });
        for (const fs::path& file : files) {
            Copy copy = examine(file, soname);
            if (seen.insert(copy.real_path).second) {
                copies.push_back(std::move(copy));
            }
        }
    }
    std::stable_sort(copies.begin(), copies.end(), [](const Copy& a, const Copy& b) {
        const int a_rank = (a.why_not.empty() ? 0 : 2) + (a.named ? 0 : 1);
        const int b_rank = (b.why_not.empty() ? 0 : 2) + (b.named ? 0 : 1);
        return a_rank < b_rank;
    });
    return copies;
}

bool is_stub(const std::string& path) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    const std::string text = (error ? fs::path{path} : real).string();
    return text.find("/stubs/") != std::string::npos;
}

std::string describe_file(const std::string& path) {
    const std::string version = file_version(path);
    const auto owner = owner_of(path);
    std::string inside = version;
    if (owner) {
        inside += say("{}{} {} by {}", inside.empty() ? "" : ", ", owner->name, owner->version,
                      name_of(owner->manager));
    }
    return inside.empty() ? path : say("{} ({})", path, inside);
}

std::string shell_quoted(const std::string& text) {
    const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 ||
               std::string_view{"_-./=:+,@%"}.find(static_cast<char>(c)) != std::string_view::npos;
    });
    if (plain) {
        return text;
    }
    std::string quoted = "'";
    for (const char c : text) {
        quoted += c == '\'' ? std::string{"'\\''"} : std::string(1, c);
    }
    return quoted + "'";
}

}  // namespace cudiag
