// What the loader itself says it uses: --list-diagnostics (glibc >= 2.34), --help (>= 2.33), else
// its read-only data.
#include <sys/auxv.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>

#include "diagnose/elf/elf_file.h"
#include "diagnose/loader/config.h"
#include "diagnose/loader/loader_run.h"
#include "diagnose/loader/search.h"

namespace cudiag {
namespace {

constexpr int kSeconds = 5;
constexpr const char* kNamedPrefix = "glibc-hwcaps/";

std::string without_trailing_slash(std::string dir) {
    while (dir.size() > 1 && dir.back() == '/') {
        dir.pop_back();
    }
    return dir;
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) {
        parts.push_back(part);
    }
    return parts;
}

// Lines `name="text"` and `name=0x12`.
std::map<std::string, std::string> diagnostics(const std::string& text) {
    std::map<std::string, std::string> values;
    for (const std::string& line : split(text, '\n')) {
        const std::size_t equals = line.find('=');
        if (equals == std::string::npos) {
            continue;
        }
        std::string value = line.substr(equals + 1);
        if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
            value = value.substr(1, value.size() - 2);
        }
        values.emplace(line.substr(0, equals), value);
    }
    return values;
}

// What the CPU offers to the legacy search (glibc <= 2.36): names of hwcap bits, lowest bit first,
// and the platform.
struct LegacyHardware {
    std::vector<std::string> capabilities;
    std::string platform;
};

std::string kernel_platform() {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel hands the address over as a number
    const auto* platform = reinterpret_cast<const char*>(getauxval(AT_PLATFORM));
    return platform != nullptr ? platform : "";
}

#ifdef __x86_64__
bool has(unsigned value, unsigned bit) {
    return (value >> bit & 1U) != 0;
}

// glibc's sysdeps/x86/cpu-features.c: only Intel's CPUs get a platform other than the kernel's.
LegacyHardware legacy_hardware() {
    LegacyHardware hardware{{"x86_64"}, kernel_platform()};
    unsigned a = 0;
    unsigned vendor_b = 0;
    unsigned vendor_c = 0;
    unsigned vendor_d = 0;
    if (__get_cpuid(0, &a, &vendor_b, &vendor_c, &vendor_d) == 0 ||
        vendor_b != signature_INTEL_ebx) {
        return hardware;
    }
    unsigned b = 0;
    unsigned c1 = 0;
    unsigned c81 = 0;
    unsigned b7 = 0;
    unsigned ignored_c = 0;
    unsigned d = 0;
    __get_cpuid(1, &a, &b, &c1, &d);
    __get_cpuid_count(7, 0, &a, &b7, &ignored_c, &d);
    __get_cpuid(0x80000001, &a, &b, &c81, &d);
    const bool avx2 =
        __builtin_cpu_supports("avx2") != 0;  // these two look at what the OS saves as well
    const bool avx512 = __builtin_cpu_supports("avx512f") != 0;
    const bool conflict = has(b7, 28);
    if (avx512 && conflict && has(b7, 27) && has(b7, 26)) {
        hardware.platform = "xeon_phi";
        return hardware;
    }
    if (avx512 && conflict && !has(b7, 27) && has(b7, 30) && has(b7, 17) && has(b7, 31)) {
        hardware.capabilities.emplace_back("avx512_1");
    }
    const bool fma = has(c1, 12);
    const bool movbe = has(c1, 22);
    const bool popcnt = has(c1, 23);
    const bool lzcnt = has(c81, 5);
    if (avx2 && fma && movbe && popcnt && lzcnt && has(b7, 3) && has(b7, 8)) {
        hardware.platform = "haswell";
    }
    return hardware;
}
#else
LegacyHardware legacy_hardware() {
    LegacyHardware hardware{{}, kernel_platform()};
#ifdef __aarch64__
    constexpr unsigned long kAtomics = 1UL << 8;  // the one bit of HWCAP_IMPORTANT there
    if ((getauxval(AT_HWCAP) & kAtomics) != 0) {
        hardware.capabilities.emplace_back("atomics");
    }
#endif
    return hardware;
}
#endif

std::vector<std::string> names_of_bits(std::uint64_t bits) {
    std::vector<std::string> names;
#ifdef __x86_64__
    for (const auto& [bit, name] : {std::pair{1, "x86_64"}, std::pair{2, "avx512_1"}}) {
        if ((bits >> bit & 1) != 0) {
            names.emplace_back(name);
        }
    }
#elif defined(__aarch64__)
    if ((bits >> 8 & 1) != 0) {
        names.emplace_back("atomics");
    }
#endif
    return names;
}

// Every subset of {capabilities, platform, "tls"}, each written from its last member to its first,
// the full set first.
void add_legacy_hwcaps(const LegacyHardware& hardware, std::vector<std::string>& hwcaps) {
    std::vector<std::string> parts = hardware.capabilities;
    if (!hardware.platform.empty()) {
        parts.push_back(hardware.platform);
    }
    parts.emplace_back("tls");
    for (std::size_t set = (std::size_t{1} << parts.size()) - 1; set > 0; --set) {
        std::string dir;
        for (std::size_t i = parts.size(); i-- > 0;) {
            if ((set >> i & 1) != 0) {
                dir += (dir.empty() ? "" : "/") + parts[i];
            }
        }
        hwcaps.push_back(dir);
    }
}

bool from_diagnostics(LoaderConfig& config, LegacyHardware& hardware) {
    const LoaderRun run = run_loader({config.interpreter, "--list-diagnostics"}, {}, "", kSeconds);
    const std::map<std::string, std::string> values = diagnostics(run.out);
    const auto value = [&](const char* name) {
        const auto found = values.find(name);
        return found != values.end() ? found->second : std::string{};
    };
    if (run.status != 0 || value("path.system_dirs[0x0]").empty()) {
        return false;
    }
    for (unsigned i = 0; i < 64; ++i) {
        std::ostringstream name;
        name << "path.system_dirs[0x" << std::hex << i << "]";
        const std::string dir = value(name.str().c_str());
        if (dir.empty()) {
            break;
        }
        config.system_dirs.push_back(without_trailing_slash(dir));
    }
    config.glibc_version = value("version.version");
    config.lib = value("dl_dst_lib");
    config.platform = value("dl_platform");
    hardware.platform = config.platform;
    hardware.capabilities =
        names_of_bits(std::strtoull(value("dl_hwcap").c_str(), nullptr, 16) &
                      std::strtoull(value("dl_hwcap_important").c_str(), nullptr, 16));
    const std::uint64_t active =
        std::strtoull(value("dl_hwcaps_subdirs_active").c_str(), nullptr, 16);
    const std::vector<std::string> subdirs = split(value("dl_hwcaps_subdirs"), ':');
    for (std::size_t i = 0; i < subdirs.size(); ++i) {
        if ((active >> i & 1) != 0) {
            config.hwcaps.push_back(kNamedPrefix + subdirs[i]);
        }
    }
    return true;
}

// glibc 2.33's --help: "  /lib (system search path)", "  x86-64-v3 (supported, searched)".
bool from_help(LoaderConfig& config) {
    const LoaderRun run = run_loader({config.interpreter, "--help"}, {}, "", kSeconds);
    bool named = false;
    for (const std::string& line : split(run.out, '\n')) {
        const std::size_t mark = line.find(" (");
        if (line.find("Subdirectories of glibc-hwcaps") == 0) {
            named = true;
        } else if (line.find("Legacy HWCAP") == 0) {
            named = false;
        } else if (mark != std::string::npos && mark > 2 &&
                   line.compare(mark, 20, " (system search path") == 0) {
            config.system_dirs.push_back(without_trailing_slash(line.substr(2, mark - 2)));
        } else if (named && mark != std::string::npos && mark > 2 &&
                   line.find("searched)") != std::string::npos) {
            config.hwcaps.push_back(kNamedPrefix + line.substr(2, mark - 2));
        }
    }
    return !config.system_dirs.empty();
}

// The system directories lie in .rodata one behind another, each with its slash and its NUL: the
// longest such run of which the first names a lib directory.
std::vector<std::string> system_dirs_in(const std::string& interpreter) {
    std::ifstream stream(interpreter, std::ios::binary);
    const std::string data{std::istreambuf_iterator<char>(stream),
                           std::istreambuf_iterator<char>()};
    std::vector<std::string> best;
    std::vector<std::string> run;
    for (std::size_t start = 0; start < data.size();) {
        const std::size_t end = std::min(data.find('\0', start), data.size());
        const std::string_view text = std::string_view(data).substr(start, end - start);
        const bool directory =
            text.size() > 2 && text.size() < 256 && text.front() == '/' && text.back() == '/';
        if (directory) {
            run.push_back(without_trailing_slash(std::string(text)));
        }
        if (!directory || end == data.size()) {
            if (run.size() > best.size() && run.front().find("lib") != std::string::npos) {
                best = run;
            }
            run.clear();
        }
        start = end + 1;
    }
    return best;
}

// "ld.so (Debian GLIBC 2.36-9) stable release version 2.36." or the like in libc.so.6: what follows
// the last "version ".
std::string version_in(const std::string& banner) {
    const std::string line = banner.substr(0, banner.find('\n'));
    const std::size_t start = line.rfind("version ");
    std::string version = start == std::string::npos ? "" : line.substr(start + 8);
    while (!version.empty() && version.back() == '.') {
        version.pop_back();
    }
    return version;
}

// glibc < 2.33 has no --version; the libc beside it has a banner.
std::string version_of(const LoaderConfig& config) {
    std::string own =
        version_in(run_loader({config.interpreter, "--version"}, {}, "", kSeconds).out);
    if (!own.empty()) {
        return own;
    }
    std::vector<std::string> dirs{config.interpreter.substr(0, config.interpreter.rfind('/'))};
    dirs.insert(dirs.end(), config.system_dirs.begin(), config.system_dirs.end());
    for (const std::string& dir : dirs) {
        std::string version = version_in(find_string(dir + "/libc.so.6", "GNU C Library", 200));
        if (!version.empty()) {
            return version;
        }
    }
    return {};
}

// $LIB is what the build called its library directory; the first system directory is that one under
// / or /usr.
std::string lib_from(const std::vector<std::string>& system_dirs) {
    if (system_dirs.empty()) {
        return {};
    }
    const std::string& first = system_dirs.front();
    return first.compare(0, 5, "/usr/") == 0 ? first.substr(5) : first.substr(1);
}

LoaderConfig ask(const std::string& interpreter) {
    LoaderConfig config;
    config.interpreter = interpreter;
    LegacyHardware hardware = legacy_hardware();
    if (!from_diagnostics(config, hardware)) {
        config.platform = hardware.platform;
        if (!from_help(config)) {
            config.system_dirs = system_dirs_in(interpreter);
        }
        config.glibc_version = version_of(config);
        config.lib = lib_from(config.system_dirs);
    }
    if (has_legacy_hwcaps(config)) {
        add_legacy_hwcaps(hardware, config.hwcaps);
    }
    config.hwcaps.emplace_back();
    return config;
}

const char* host_interpreter() {
#if defined(__x86_64__)
    return "/lib64/ld-linux-x86-64.so.2";
#elif defined(__aarch64__)
    return "/lib/ld-linux-aarch64.so.1";
#elif defined(__powerpc64__)
    return "/lib64/ld64.so.2";
#else
    return "";
#endif
}

}  // namespace

LoaderConfig host_loader_config() {
    return loader_config_for(host_interpreter());
}

LoaderConfig loader_config_for(const std::string& interpreter) {
    static std::mutex lock;
    static std::map<std::string, LoaderConfig> known;
    const std::lock_guard<std::mutex> hold(lock);
    const auto found = known.find(interpreter);
    return found != known.end() ? found->second
                                : known.emplace(interpreter, ask(interpreter)).first->second;
}

bool glibc_at_least(const LoaderConfig& config, int minor) {
    int major_have = 0;
    int minor_have = 0;
    if (std::sscanf(config.glibc_version.c_str(), "%d.%d", &major_have, &minor_have) != 2) {
        return true;  // unknown: taken as a current one
    }
    return major_have > 2 || minor_have >= minor;
}

bool has_legacy_hwcaps(const LoaderConfig& config) {
    return !glibc_at_least(config, 37);
}

CacheTaste cache_taste(const LoaderConfig& config) {
    CacheTaste taste;
#if defined(__aarch64__)
    taste.flags = 0xa03;
#elif defined(__powerpc64__)
    taste.flags = 0x503;
#else
    taste.flags = 0x303;
#endif
    for (const std::string& dir : config.hwcaps) {
        if (dir.compare(0, std::strlen(kNamedPrefix), kNamedPrefix) != 0) {
            continue;
        }
        const std::string name = dir.substr(std::strlen(kNamedPrefix));
        taste.subdirectories.push_back(name);
        if (name.compare(0, 8, "x86-64-v") == 0 && name.size() == 9) {
            taste.isa_level = std::max(taste.isa_level, static_cast<unsigned>(name[8] - '1'));
        }
    }
    taste.legacy_hwcaps = has_legacy_hwcaps(config);
    for (const auto& [bit, name] :
         {std::pair{1, "x86_64"}, std::pair{2, "avx512_1"}, std::pair{8, "atomics"}}) {
        if (std::find(config.hwcaps.begin(), config.hwcaps.end(), name) != config.hwcaps.end()) {
            taste.legacy_bits |= std::uint64_t{1} << bit;
        }
    }
    // Bits 48 on name the platform, in the order of glibc's dl_x86_platforms.
    for (const auto& [bit, name] : {std::pair{50, "haswell"}, std::pair{51, "xeon_phi"}}) {
        if (config.platform == name) {
            taste.platform_bit = std::uint64_t{1} << bit;
        }
    }
    return taste;
}

}  // namespace cudiag
