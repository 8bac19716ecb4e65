#include "diagnose/elf/elf_file.h"

#include <elf.h>

#include <algorithm>

#include "diagnose/elf/elf_image.h"
#include "diagnose/elf/versions.h"

namespace cudiag {
namespace {

constexpr std::uint64_t kLongestNote = 64U << 10;
constexpr std::uint64_t kLongestComment = 4U << 10;

std::string hex(const unsigned char* bytes, std::size_t count) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
        text += kDigits[bytes[i] >> 4];
        text += kDigits[bytes[i] & 15];
    }
    return text;
}

std::string build_id(const ElfImage& image) {
    for (const GElf_Phdr& segment : image.segments()) {
        if (segment.p_type != PT_NOTE || segment.p_filesz > kLongestNote) {
            continue;
        }
        Elf_Data* data = image.chunk(segment.p_offset, segment.p_filesz,
                                     segment.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
        GElf_Nhdr note = {};
        std::size_t name = 0;
        std::size_t description = 0;
        std::size_t next = 0;
        while (data != nullptr && next < data->d_size) {
            next = gelf_getnote(data, next, &note, &name, &description);
            if (next == 0) {
                break;
            }
            const auto* base = static_cast<const unsigned char*>(data->d_buf);
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
                std::string_view(reinterpret_cast<const char*>(base + name), 3) == "GNU") {
                return hex(base + description, note.n_descsz);
            }
        }
    }
    return {};
}

// .comment is not loaded, so only the section headers know it; a stripped or hostile table just
// yields "".
std::string comment(const ElfImage& image) {
    std::size_t names = 0;
    if (elf_getshdrstrndx(image.handle(), &names) != 0) {
        return {};
    }
    Elf_Scn* section = nullptr;
    while ((section = elf_nextscn(image.handle(), section)) != nullptr) {
        GElf_Shdr header = {};
        if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_PROGBITS) {
            continue;
        }
        const char* name = elf_strptr(image.handle(), names, header.sh_name);
        if (name == nullptr || std::string_view(name) != ".comment") {
            continue;
        }
        std::string text = image.bytes(header.sh_offset, std::min(header.sh_size, kLongestComment));
        while (!text.empty() && text.back() == '\0') {
            text.pop_back();
        }
        std::replace(text.begin(), text.end(), '\0', '\n');
        return text;
    }
    return {};
}

void read_dynamic_section(const ElfImage& image, ElfFile& file) {
    for (const GElf_Dyn& entry : image.dynamic()) {
        if (entry.d_tag == DT_NEEDED) {
            file.needed.push_back(image.name(entry.d_un.d_val));
        } else if (entry.d_tag == DT_AUXILIARY) {
            file.auxiliary.push_back(image.name(entry.d_un.d_val));
        } else if (entry.d_tag == DT_FILTER) {
            file.filters.push_back(image.name(entry.d_un.d_val));
        }
    }
    if (const auto index = image.tag(DT_SONAME)) {
        file.soname = image.name(*index);
    }
    if (const auto index = image.tag(DT_RPATH)) {
        file.rpath = image.name(*index);
    }
    if (const auto index = image.tag(DT_RUNPATH)) {
        file.runpath = image.name(*index);
    }
    file.flags = image.tag(DT_FLAGS).value_or(0);
    file.flags1 = image.tag(DT_FLAGS_1).value_or(0);
    file.versioned = image.tag(DT_VERDEF).has_value();
    for (NumberedVersion& needed : needed_versions(image)) {
        file.needed_versions.push_back(std::move(needed.version));
    }
    for (NumberedVersion& defined : defined_versions(image)) {
        if (defined.base) {
            file.base_version = std::move(defined.version.version);
        } else {
            file.defined_versions.push_back(std::move(defined.version.version));
        }
    }
}

}  // namespace

bool ElfFile::static_tls() const {
    return (flags & DF_STATIC_TLS) != 0;
}

bool ElfFile::no_default_lib() const {
    return (flags1 & DF_1_NODEFLIB) != 0;
}

bool ElfFile::executable() const {
    return type == ET_EXEC || (flags1 & DF_1_PIE) != 0;
}

ElfRead read_elf(const std::string& path) {
    const ElfImage image(path);
    ElfRead result{std::nullopt, image.problem(), image.detail()};
    if (!image.usable() || image.problem() == ElfProblem::damaged) {
        return result;
    }
    ElfFile file;
    file.path = path;
    file.machine = image.header().e_machine;
    file.bits = image.header().e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
    file.little_endian = image.header().e_ident[EI_DATA] == ELFDATA2LSB;
    file.type = image.header().e_type;
    for (const GElf_Phdr& segment : image.segments()) {
        if (segment.p_type == PT_INTERP) {
            file.interpreter = image.string_at(segment.p_offset, segment.p_filesz);
        } else if (segment.p_type == PT_TLS) {
            file.tls_bytes = segment.p_memsz;
            file.tls_align = segment.p_align;
        }
    }
    read_dynamic_section(image, file);
    file.build_id = build_id(image);
    file.comment = comment(image);
    result.file = std::move(file);
    return result;
}

}  // namespace cudiag
