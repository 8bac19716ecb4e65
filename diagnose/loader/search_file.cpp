#include "diagnose/loader/search_file.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "diagnose/elf/elf_file.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

// EI_ABIVERSION that glibc's LIBC_ABI_MAX admits for ELFOSABI_GNU (libc-abis: IFUNC, UNIQUE, …).
constexpr unsigned char kNewestAbi = 3;
constexpr std::uint64_t kPage = 4096;

class Descriptor {
  public:
    explicit Descriptor(const std::string& path)
        : fd_{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)} {}

    ~Descriptor() {
        if (fd_ >= 0) {
            close(fd_);
        }
    }

    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    int get() const { return fd_; }

  private:
    int fd_;
};

Candidate pass_over(int error_number, std::string result) {
    Candidate candidate;
    candidate.error_number = error_number;
    candidate.result = std::move(result);
    return candidate;
}

Candidate reject(std::string error, std::string result) {
    Candidate candidate;
    candidate.verdict = Verdict::rejected;
    candidate.error = std::move(error);
    candidate.result = std::move(result);
    return candidate;
}

Candidate reject(const char* error) {
    return reject(error, error);
}

Candidate unopened(int error_number) {
    switch (error_number) {
        case ENOENT:
        case ENOTDIR:
            return pass_over(error_number, say("absent"));
        case EACCES:
        case EPERM:
            return pass_over(error_number, say("permission denied"));
        default:
            return pass_over(error_number, std::strerror(error_number));
    }
}

// The first part of the header, which both classes share, and what ld.so says of it in its order.
Candidate check_identification(const std::string& path, const unsigned char* ident,
                               const FileDemands& demands) {
    const unsigned char wanted_class = demands.bits == 64 ? ELFCLASS64 : ELFCLASS32;
    if (std::memcmp(ident, ELFMAG, SELFMAG) != 0) {
        return reject("invalid ELF header", say("not ELF: {}", read_elf(path).detail));
    }
    if (ident[EI_CLASS] != wanted_class) {
        Candidate candidate = pass_over(ENOENT, say("wrong ELF class"));
        candidate.other_class = true;
        return candidate;
    }
    if (ident[EI_DATA] != ELFDATA2LSB) {
        return reject("ELF file data encoding not little-endian");
    }
    if (ident[EI_VERSION] != EV_CURRENT) {
        return reject("ELF file version ident does not match current one");
    }
    if (ident[EI_OSABI] != ELFOSABI_SYSV && ident[EI_OSABI] != ELFOSABI_GNU) {
        return reject("ELF file OS ABI invalid");
    }
    if (ident[EI_ABIVERSION] > (ident[EI_OSABI] == ELFOSABI_SYSV ? 0 : kNewestAbi)) {
        return reject("ELF file ABI version invalid");
    }
    for (int i = EI_PAD; i < EI_NIDENT; ++i) {
        if (ident[i] != 0) {
            return reject("nonzero padding in e_ident");
        }
    }
    Candidate fine;
    fine.verdict = Verdict::usable;
    fine.result = say("found");
    return fine;
}

// The oldest kernel that .note.ABI-tag names, in the form of FileDemands::kernel; 0 if there is
// none.
template <class Segment>
unsigned kernel_wanted(int fd, const Segment& segment) {
    constexpr std::size_t kLongest = 4096;
    constexpr std::uint32_t kLinux = 0;
    if (segment.p_type != PT_NOTE || segment.p_filesz < 32 ||
        (segment.p_align != 4 && segment.p_align != 8)) {
        return 0;
    }
    std::string notes(std::min<std::size_t>(segment.p_filesz, kLongest), '\0');
    const ssize_t got = pread(fd, notes.data(), notes.size(), static_cast<off_t>(segment.p_offset));
    notes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    const auto rounded = [&](std::size_t size) {
        return (size + segment.p_align - 1) & ~(segment.p_align - 1);
    };
    for (std::size_t at = 0; at + 32 <= notes.size();) {
        std::array<std::uint32_t, 8>
            note;  // name size, description size, type, "GNU", system, three numbers
        std::memcpy(note.data(), notes.data() + at, sizeof note);
        if (note[0] == 4 && note[1] == 16 && note[2] == NT_GNU_ABI_TAG &&
            std::memcmp(&note[3], "GNU", 4) == 0) {
            return note[4] == kLinux
                       ? (note[5] & 0xff) << 16 | (note[6] & 0xff) << 8 | (note[7] & 0xff)
                       : 0;
        }
        at += rounded(12 + std::size_t{note[0]}) + rounded(note[1]);
    }
    return 0;
}

template <class Segment>
Candidate check_segments(int fd, const std::string& table, std::uint16_t type,
                         const FileDemands& demands, Candidate fine) {
    bool loadable = false;
    bool dynamic = false;
    bool empty_dynamic = false;
    for (std::size_t i = 0; i + sizeof(Segment) <= table.size(); i += sizeof(Segment)) {
        Segment segment;
        std::memcpy(&segment, table.data() + i, sizeof segment);
        const unsigned kernel = demands.kernel != 0 ? kernel_wanted(fd, segment) : 0;
        if (kernel > demands.kernel) {
            return pass_over(ENOENT, say("needs Linux {}.{}.{}", kernel >> 16, kernel >> 8 & 0xff,
                                         kernel & 0xff));
        }
        if (segment.p_type == PT_DYNAMIC) {
            dynamic = dynamic || segment.p_filesz != 0;
            empty_dynamic = empty_dynamic || segment.p_filesz == 0;
        }
        if (segment.p_type == PT_LOAD) {
            loadable = true;
            if (((segment.p_vaddr - segment.p_offset) & (kPage - 1)) != 0) {
                return reject("ELF load command address/offset not page-aligned");
            }
        }
    }
    if (!loadable) {
        return reject("object file has no loadable segments");
    }
    if (type != ET_DYN && !demands.as_program) {
        return reject("cannot dynamically load executable");
    }
    if ((!dynamic && type == ET_DYN) || empty_dynamic) {
        return reject("object file has no dynamic section",
                      say("no dynamic section (a separate debug file?)"));
    }
    return fine;
}

template <class Header, class Segment>
Candidate check_headers(int fd, const std::string& start, const FileDemands& demands,
                        Candidate fine) {
    Header header;
    if (start.size() < sizeof header) {
        return reject("file too short", say("not ELF: only {} bytes long", start.size()));
    }
    std::memcpy(&header, start.data(), sizeof header);
    if (header.e_version != EV_CURRENT) {
        return reject("ELF file version does not match current one");
    }
    if (header.e_machine != demands.machine) {
        return pass_over(ENOENT,
                         say("wrong machine: {}", machine_name(header.e_machine, demands.bits)));
    }
    if (header.e_type != ET_DYN && header.e_type != ET_EXEC) {
        return reject("only ET_DYN and ET_EXEC can be loaded");
    }
    if (header.e_phentsize != sizeof(Segment)) {
        return reject("ELF file's phentsize not the expected size");
    }
    std::string table(header.e_phnum * sizeof(Segment), '\0');
    const ssize_t got = pread(fd, table.data(), table.size(), static_cast<off_t>(header.e_phoff));
    if (got < 0 || static_cast<std::size_t>(got) != table.size()) {
        return reject("cannot read file data", say("truncated: its program headers are cut off"));
    }
    return check_segments<Segment>(fd, table, header.e_type, demands, std::move(fine));
}

}  // namespace

Candidate examine(const std::string& path, const FileDemands& demands) {
    const Descriptor file(path);
    if (file.get() < 0) {
        return unopened(errno);
    }
    struct stat status = {};
    if (fstat(file.get(), &status) != 0) {
        return pass_over(errno, std::strerror(errno));
    }
    if (S_ISDIR(status.st_mode)) {
        return reject("cannot read file data: Is a directory", say("a directory"));
    }
    std::string start(sizeof(Elf64_Ehdr), '\0');
    const ssize_t got = pread(file.get(), start.data(), start.size(), 0);
    start.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    const std::size_t header_size = demands.bits == 64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
    if (start.size() < header_size) {
        return reject("file too short", say("not ELF: only {} bytes long", start.size()));
    }
    Candidate verdict =
        check_identification(path, reinterpret_cast<const unsigned char*>(start.data()), demands);
    if (verdict.verdict != Verdict::usable) {
        return verdict;
    }
    verdict.device = status.st_dev;
    verdict.inode = status.st_ino;
    return demands.bits == 64 ? check_headers<Elf64_Ehdr, Elf64_Phdr>(file.get(), start, demands,
                                                                      std::move(verdict))
                              : check_headers<Elf32_Ehdr, Elf32_Phdr>(file.get(), start, demands,
                                                                      std::move(verdict));
}

unsigned running_kernel() {
    utsname name = {};
    unsigned major = 0;
    unsigned minor = 0;
    unsigned patch = 0;
    if (uname(&name) != 0 || std::sscanf(name.release, "%u.%u.%u", &major, &minor, &patch) < 2) {
        return 0;
    }
    return (major & 0xff) << 16 | (minor & 0xff) << 8 | std::min(patch, 0xffU);
}

std::string cannot_open(int error_number) {
    return fmt::format("cannot open shared object file: {}", std::strerror(error_number));
}

}  // namespace cudiag
