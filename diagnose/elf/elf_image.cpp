#include "diagnose/elf/elf_image.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "diagnose/say.h"

namespace cudiag {
namespace {

constexpr std::uint64_t kLongestString = 64U << 10;  // rpaths of Nix and Spack builds reach 8 KB
constexpr std::uint64_t kMostDynamicEntries = 1U << 16;
constexpr std::size_t kIdentification = 16;
constexpr std::uint64_t kWindow = 16U << 10;

std::string first_words(const std::string& head) {
    std::string words;
    for (const char c : head.substr(0, 40)) {
        if (c == '\n' || c == '\0') {
            break;
        }
        words += (c >= ' ' && c <= '~') ? c : '?';
    }
    return words;
}

bool is_text(const std::string& head) {
    return !head.empty() && std::all_of(head.begin(), head.end(), [](char c) {
        return (c >= ' ' && c <= '~') || c == '\n' || c == '\t' || c == '\r';
    });
}

bool is_linker_script(const std::string& head) {
    for (const char* word :
         {"GNU ld script", "INPUT(", "INPUT (", "GROUP(", "GROUP (", "OUTPUT_FORMAT"}) {
        if (head.find(word) != std::string::npos) {
            return true;
        }
    }
    return false;
}

}  // namespace

ElfImage::ElfImage(const std::string& path) {
    // O_NONBLOCK: a FIFO where a library is expected must not hang us.
    fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status = {};
    if (fd_ < 0 || fstat(fd_, &status) != 0) {
        problem_ =
            errno == ENOENT || errno == ENOTDIR ? ElfProblem::absent : ElfProblem::unreadable;
        detail_ = std::strerror(errno);
        return;
    }
    if (S_ISDIR(status.st_mode)) {
        problem_ = ElfProblem::is_directory;
        detail_ = say("a directory");
        return;
    }
    if (!S_ISREG(status.st_mode)) {
        problem_ = ElfProblem::unreadable;
        detail_ = say("not a regular file");
        return;
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
    if (size_ == 0) {
        problem_ = ElfProblem::empty;
        detail_ = say("an empty file");
        return;
    }
    const std::string magic = bytes(0, kIdentification);
    if (magic.compare(0, SELFMAG, ELFMAG) != 0) {
        describe_non_elf();
        return;
    }
    const char elf_class = magic.size() > EI_CLASS ? magic[EI_CLASS] : '\0';
    const std::uint64_t header_size =
        elf_class == ELFCLASS32 ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr);
    if (size_ < header_size) {
        problem_ = ElfProblem::truncated;
        detail_ = say("needs at least {} bytes for its header, has {}", header_size, size_);
        return;
    }
    elf_version(EV_CURRENT);
    elf_ = elf_begin(fd_, ELF_C_READ, nullptr);
    if (elf_ == nullptr || elf_kind(elf_) != ELF_K_ELF || gelf_getehdr(elf_, &header_) == nullptr ||
        !read_segments()) {
        if (problem_ == ElfProblem::none) {
            problem_ = ElfProblem::damaged;
            detail_ = say("its ELF header makes no sense");
        }
        elf_end(elf_);
        elf_ = nullptr;
        return;
    }
    check_length();
    read_dynamic();
}

ElfImage::~ElfImage() {
    elf_end(elf_);
    if (fd_ >= 0) {
        close(fd_);
    }
}

void ElfImage::describe_non_elf() {
    const std::string head = bytes(0, 256);
    problem_ = ElfProblem::not_elf;
    if (head.compare(0, 7, "!<arch>") == 0) {
        detail_ = say("a static library (ar archive)");
        return;
    }
    if (!is_text(head)) {
        detail_ = say("data that does not begin with the ELF magic ({} bytes)", size_);
        return;
    }
    if (is_linker_script(head)) {
        problem_ = ElfProblem::linker_script;
        detail_ = say("a linker script that begins with '{}'", first_words(head));
        return;
    }
    detail_ = say("a text file that begins with '{}'", first_words(head));
    if (head.compare(0, 34, "version https://git-lfs.github.com") == 0) {
        detail_ = say("a Git LFS pointer: the file itself was never fetched");
    }
}

bool ElfImage::read_segments() {
    const std::uint64_t entry =
        header_.e_ident[EI_CLASS] == ELFCLASS32 ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr);
    const std::uint64_t count =
        header_.e_phnum;  // the loader too takes e_phnum as it stands (no PN_XNUM)
    if (count == 0) {
        return true;  // an object file: nothing to load, but its sections may be asked for
    }
    if (header_.e_phentsize != entry) {
        return false;
    }
    if (header_.e_phoff > size_ || count * entry > size_ - header_.e_phoff) {
        problem_ = ElfProblem::truncated;
        detail_ = say("needs {} bytes for its program headers, has {}",
                      header_.e_phoff + count * entry, size_);
        return false;
    }
    Elf_Data* data = chunk(header_.e_phoff, count * entry, ELF_T_PHDR);
    if (data == nullptr) {
        return false;
    }
    const bool wide = header_.e_ident[EI_CLASS] == ELFCLASS64;
    for (std::uint64_t i = 0; i < count; ++i) {
        GElf_Phdr segment = {};
        if (wide) {
            Elf64_Phdr raw;
            std::memcpy(&raw, static_cast<char*>(data->d_buf) + i * entry, sizeof raw);
            segment = raw;
        } else {
            Elf32_Phdr raw;
            std::memcpy(&raw, static_cast<char*>(data->d_buf) + i * entry, sizeof raw);
            segment = {raw.p_type,  raw.p_flags,  raw.p_offset, raw.p_vaddr,
                       raw.p_paddr, raw.p_filesz, raw.p_memsz,  raw.p_align};
        }
        segments_.push_back(segment);
    }
    return true;
}

void ElfImage::check_length() {
    std::uint64_t needed = 0;
    for (const GElf_Phdr& segment : segments_) {
        if (segment.p_type != PT_LOAD) {
            continue;
        }
        std::uint64_t end = 0;
        if (__builtin_add_overflow(segment.p_offset, segment.p_filesz, &end)) {
            problem_ = ElfProblem::damaged;
            detail_ = say("a segment that ends beyond 2^64 bytes");
            return;
        }
        needed = std::max(needed, end);
    }
    if (needed > size_) {
        problem_ = ElfProblem::truncated;
        detail_ = say("needs {} bytes, has {}", needed, size_);
    }
}

void ElfImage::read_dynamic() {
    const bool wide = header_.e_ident[EI_CLASS] == ELFCLASS64;
    const std::uint64_t entry = wide ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
    for (const GElf_Phdr& segment : segments_) {
        if (segment.p_type != PT_DYNAMIC || segment.p_filesz < entry) {
            continue;
        }
        // The loader goes by the address, which a tool that moved the section without its header
        // may have changed.
        const std::uint64_t offset = offset_of(segment.p_vaddr).value_or(segment.p_offset);
        const std::uint64_t count = std::min(segment.p_filesz / entry, kMostDynamicEntries);
        Elf_Data* data = chunk(offset, count * entry, ELF_T_DYN);
        for (std::uint64_t i = 0; data != nullptr && (i + 1) * entry <= data->d_size; ++i) {
            GElf_Dyn dyn = {};
            if (gelf_getdyn(data, static_cast<int>(i), &dyn) == nullptr || dyn.d_tag == DT_NULL) {
                break;
            }
            dynamic_.push_back(dyn);
        }
    }
    if (const auto address = tag(DT_STRTAB)) {
        strings_ = offset_of(*address);
        strings_size_ = tag(DT_STRSZ).value_or(0);
    }
}

std::optional<std::uint64_t> ElfImage::offset_of(std::uint64_t address) const {
    for (const GElf_Phdr& segment : segments_) {
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
            address - segment.p_vaddr < segment.p_filesz) {
            std::uint64_t offset = 0;
            if (__builtin_add_overflow(segment.p_offset, address - segment.p_vaddr, &offset) ||
                offset >= size_) {
                return std::nullopt;
            }
            return offset;
        }
    }
    return std::nullopt;
}

Elf_Data* ElfImage::chunk(std::uint64_t offset, std::uint64_t limit, Elf_Type type) const {
    if (offset >= size_ || elf_ == nullptr) {
        return nullptr;
    }
    const std::uint64_t length = std::min(limit, size_ - offset);
    // An odd length would leave a half-converted last entry; callers look at d_size.
    return length == 0
               ? nullptr
               : elf_getdata_rawchunk(elf_, static_cast<std::int64_t>(offset), length, type);
}

std::string ElfImage::bytes(std::uint64_t offset, std::uint64_t limit) const {
    if (fd_ < 0 || offset >= size_) {
        return {};
    }
    std::string buffer(std::min(limit, size_ - offset), '\0');
    std::size_t have = 0;
    while (have < buffer.size()) {
        const ssize_t got = pread(fd_, buffer.data() + have, buffer.size() - have,
                                  static_cast<off_t>(offset + have));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        have += static_cast<std::size_t>(got);
    }
    buffer.resize(have);
    return buffer;
}

std::string_view ElfImage::view(std::uint64_t offset, std::uint64_t limit) const {
    const bool inside = offset >= window_start_ && offset - window_start_ < window_.size();
    if (!inside || limit > window_.size() - (offset - window_start_)) {
        window_start_ = offset;
        window_ = bytes(offset, std::max(limit, kWindow));
    }
    return std::string_view(window_).substr(offset - window_start_, limit);
}

std::optional<std::uint32_t> ElfImage::word(std::uint64_t offset) const {
    const std::string_view raw = view(offset, sizeof(std::uint32_t));
    if (raw.size() != sizeof(std::uint32_t)) {
        return std::nullopt;
    }
    std::uint32_t value = 0;
    std::memcpy(&value, raw.data(), sizeof value);
    return foreign_order() ? __builtin_bswap32(value) : value;
}

std::optional<std::uint16_t> ElfImage::half(std::uint64_t offset) const {
    const std::string_view raw = view(offset, sizeof(std::uint16_t));
    if (raw.size() != sizeof(std::uint16_t)) {
        return std::nullopt;
    }
    std::uint16_t value = 0;
    std::memcpy(&value, raw.data(), sizeof value);
    return foreign_order() ? __builtin_bswap16(value) : value;
}

bool ElfImage::foreign_order() const {
    return header_.e_ident[EI_DATA] !=
           (std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB);
}

std::string ElfImage::string_at(std::uint64_t offset, std::uint64_t limit) const {
    std::string result;
    limit = std::min(limit, kLongestString);
    while (result.size() < limit) {
        const std::string_view piece =
            view(offset + result.size(), std::min<std::uint64_t>(128, limit - result.size()));
        const std::size_t end = piece.find('\0');
        result += piece.substr(0, end);
        if (end != std::string_view::npos || piece.empty()) {
            break;
        }
    }
    return result;
}

std::optional<std::uint64_t> ElfImage::tag(std::int64_t tag) const {
    for (auto entry = dynamic_.rbegin(); entry != dynamic_.rend(); ++entry) {
        if (entry->d_tag == tag) {
            return entry->d_un.d_val;
        }
    }
    return std::nullopt;
}

std::string ElfImage::name(std::uint64_t index) const {
    std::uint64_t offset = 0;
    if (!strings_ || index >= strings_size_ || __builtin_add_overflow(*strings_, index, &offset)) {
        return {};
    }
    return string_at(offset, strings_size_ - index);
}

}  // namespace cudiag
