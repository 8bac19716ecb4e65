#include "shim/loaded_object.h"

#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

namespace cudiag {
namespace {

constexpr uint16_t kHiddenVersion =
    0x8000;  // versym: foo@V, not foo@@V (ELF gABI extension, Solaris and GNU)

struct Tables {
    const ElfW(Sym) * symbols;
    const char* strings;
    const uint32_t* gnu_hash;
    const uint32_t* hash;
    const uint16_t* versions;
    const char* soname;
};

// ELF holds addresses as integers: here, and nowhere else, one becomes a pointer.
template <class T>
T* pointer_to(ElfW(Addr) address) {
    return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr): see above
}

// glibc relocates d_ptr in place, musl does not; the vdso's is never relocated.
template <class T>
const T* at(const struct dl_phdr_info& info, ElfW(Addr) address) {
    return pointer_to<const T>(address < info.dlpi_addr ? info.dlpi_addr + address : address);
}

#if defined(__x86_64__)
constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT;
constexpr uint32_t kGlobData = R_X86_64_GLOB_DAT;
#else
constexpr uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT;
constexpr uint32_t kGlobData = R_AARCH64_GLOB_DAT;
#endif

const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info& info) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
            return pointer_to<const ElfW(Dyn)>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
        }
    }
    return nullptr;
}

Tables tables_of(const struct dl_phdr_info& info) {
    Tables tables{};
    const ElfW(Dyn)* dynamic = dynamic_of(info);
    if (dynamic == nullptr) {
        return tables;
    }
    ElfW(Addr) soname = 0;
    for (; dynamic->d_tag != DT_NULL; ++dynamic) {
        switch (dynamic->d_tag) {
            case DT_SYMTAB:
                tables.symbols = at<ElfW(Sym)>(info, dynamic->d_un.d_ptr);
                break;
            case DT_STRTAB:
                tables.strings = at<char>(info, dynamic->d_un.d_ptr);
                break;
            case DT_GNU_HASH:
                tables.gnu_hash = at<uint32_t>(info, dynamic->d_un.d_ptr);
                break;
            case DT_HASH:
                tables.hash = at<uint32_t>(info, dynamic->d_un.d_ptr);
                break;
            case DT_VERSYM:
                tables.versions = at<uint16_t>(info, dynamic->d_un.d_ptr);
                break;
            case DT_SONAME:
                soname = dynamic->d_un.d_val;
                break;
            default:
                break;
        }
    }
    if (soname != 0 && tables.strings != nullptr) {
        tables.soname = tables.strings + soname;
    }
    return tables;
}

void* if_wanted(const struct dl_phdr_info& info, const Tables& tables, uint32_t index,
                const char* name) {
    const ElfW(Sym)& symbol = tables.symbols[index];
    const unsigned type = symbol.st_info & 0xfU;
    const bool usable = symbol.st_shndx != SHN_UNDEF &&
                        (type == STT_FUNC || type == STT_NOTYPE || type == STT_OBJECT);
    const bool visible =
        tables.versions == nullptr || (tables.versions[index] & kHiddenVersion) == 0;
    if (!usable || !visible || strcmp(tables.strings + symbol.st_name, name) != 0) {
        return nullptr;
    }
    return pointer_to<void>(info.dlpi_addr + symbol.st_value);
}

// DT_GNU_HASH: header of four words, bloom filter, buckets, chains (binutils' bfd/elflink.c, "gnu
// hash").
void* by_gnu_hash(const struct dl_phdr_info& info, const Tables& tables, const char* name) {
    uint32_t hash = 5381;
    for (const char* c = name; *c != '\0'; ++c) {
        hash = hash * 33 + static_cast<unsigned char>(*c);
    }
    const uint32_t buckets = tables.gnu_hash[0];
    const uint32_t first = tables.gnu_hash[1];
    const uint32_t bloom_words = tables.gnu_hash[2];
    const uint32_t shift = tables.gnu_hash[3];
    const auto* bloom = reinterpret_cast<const ElfW(Addr)*>(tables.gnu_hash + 4);
    const auto* bucket = reinterpret_cast<const uint32_t*>(bloom + bloom_words);
    const uint32_t* chain = bucket + buckets;
    constexpr uint32_t kBits = 8 * sizeof(ElfW(Addr));
    if (buckets == 0 || bloom_words == 0) {
        return nullptr;
    }
    const ElfW(Addr) word = bloom[(hash / kBits) % bloom_words];
    if (((word >> (hash % kBits)) & (word >> ((hash >> shift) % kBits)) & 1) == 0) {
        return nullptr;
    }
    uint32_t index = bucket[hash % buckets];
    if (index < first) {
        return nullptr;
    }
    for (;; ++index) {
        const uint32_t candidate = chain[index - first];
        if ((candidate | 1U) == (hash | 1U)) {
            if (void* address = if_wanted(info, tables, index, name)) {
                return address;
            }
        }
        if ((candidate & 1U) != 0) {
            return nullptr;
        }
    }
}

void* by_sysv_hash(const struct dl_phdr_info& info, const Tables& tables, const char* name) {
    uint32_t hash = 0;
    for (const char* c = name; *c != '\0'; ++c) {
        hash = (hash << 4) + static_cast<unsigned char>(*c);
        hash ^= (hash >> 24) & 0xf0U;
    }
    hash &= 0x0fffffffU;
    const uint32_t buckets = tables.hash[0];
    const uint32_t* bucket = tables.hash + 2;
    const uint32_t* chain = bucket + buckets;
    for (uint32_t index = buckets == 0 ? 0 : bucket[hash % buckets]; index != 0;
         index = chain[index]) {
        if (void* address = if_wanted(info, tables, index, name)) {
            return address;
        }
    }
    return nullptr;
}

// Relocations of one table, with the object's own symbols.
struct Relocations {
    const ElfW(Rela) * first;
    size_t bytes;
    size_t relative;  // of them, at the beginning: without a symbol
};

// Is the slot in what ld.so makes read-only after relocation? It rounds both ends down to pages
// (glibc, elf/dl-reloc.c, _dl_protect_relro).
bool is_read_only(const struct dl_phdr_info& info, uintptr_t slot) {
    const uintptr_t page = getauxval(AT_PAGESZ);
    bool writable = false;
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = info.dlpi_phdr[i];
        const uintptr_t begin = info.dlpi_addr + segment.p_vaddr;
        const uintptr_t end = begin + segment.p_memsz;
        if (segment.p_type == PT_GNU_RELRO && slot >= (begin & ~(page - 1)) &&
            slot < (end & ~(page - 1))) {
            return true;
        }
        writable = writable || (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) != 0 &&
                                slot >= begin && slot < end);
    }
    return !writable;
}

// How many there were.
size_t visit_imports(const struct dl_phdr_info& info, const Tables& tables,
                     const Relocations& relocations, const char* beginning,
                     void (*visit)(const Import& import, void* data), void* data) {
    const size_t length = strlen(beginning);
    const size_t count = relocations.bytes / sizeof(ElfW(Rela));
    size_t found = 0;
    for (size_t i = relocations.relative; relocations.first != nullptr && i < count; ++i) {
        const ElfW(Rela)& relocation = relocations.first[i];
        const auto type = static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info));
        if (type != kJumpSlot && type != kGlobData) {
            continue;
        }
        const char* name = tables.strings + tables.symbols[ELF64_R_SYM(relocation.r_info)].st_name;
        if (strncmp(name, beginning, length) == 0) {
            const uintptr_t slot = info.dlpi_addr + relocation.r_offset;
            visit({name, pointer_to<void*>(slot), is_read_only(info, slot)}, data);
            ++found;
        }
    }
    return found;
}

}  // namespace

bool holds_address(const struct dl_phdr_info& info, uintptr_t address) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = info.dlpi_phdr[i];
        const uintptr_t begin = info.dlpi_addr + segment.p_vaddr;
        if (segment.p_type == PT_LOAD && address >= begin && address - begin < segment.p_memsz) {
            return true;
        }
    }
    return false;
}

bool holds_this_code(const struct dl_phdr_info& info) {
    return holds_address(info, reinterpret_cast<uintptr_t>(&holds_this_code));
}

void* exported_address(const struct dl_phdr_info& info, const char* name) {
    const Tables tables = tables_of(info);
    if (tables.symbols == nullptr || tables.strings == nullptr) {
        return nullptr;
    }
    if (tables.gnu_hash != nullptr) {
        return by_gnu_hash(info, tables, name);
    }
    return tables.hash != nullptr ? by_sysv_hash(info, tables, name) : nullptr;
}

const char* soname_of(const struct dl_phdr_info& info) {
    return tables_of(info).soname;
}

bool needs_library(const struct dl_phdr_info& info, const char* beginning) {
    const Tables tables = tables_of(info);
    const ElfW(Dyn)* dynamic = dynamic_of(info);
    for (; dynamic != nullptr && tables.strings != nullptr && dynamic->d_tag != DT_NULL;
         ++dynamic) {
        if (dynamic->d_tag == DT_NEEDED &&
            strncmp(tables.strings + dynamic->d_un.d_val, beginning, strlen(beginning)) == 0) {
            return true;
        }
    }
    return false;
}

void for_each_import(const struct dl_phdr_info& info, const char* beginning,
                     void (*visit)(const Import& import, void* data), void* data) {
    const Tables tables = tables_of(info);
    Relocations by_table{};
    Relocations others{};
    bool with_addends = true;
    for (const ElfW(Dyn)* dynamic = dynamic_of(info);
         dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
        switch (dynamic->d_tag) {
            case DT_JMPREL:
                by_table.first = at<ElfW(Rela)>(info, dynamic->d_un.d_ptr);
                break;
            case DT_PLTRELSZ:
                by_table.bytes = dynamic->d_un.d_val;
                break;
            case DT_PLTREL:
                with_addends = dynamic->d_un.d_val == DT_RELA;
                break;
            case DT_RELA:
                others.first = at<ElfW(Rela)>(info, dynamic->d_un.d_ptr);
                break;
            case DT_RELASZ:
                others.bytes = dynamic->d_un.d_val;
                break;
            case DT_RELACOUNT:
                others.relative = dynamic->d_un.d_val;
                break;
            default:
                break;
        }
    }
    if (tables.symbols == nullptr || tables.strings == nullptr || !with_addends) {
        return;
    }
    if (visit_imports(info, tables, by_table, beginning, visit, data) == 0) {
        (void)visit_imports(info, tables, others, beginning, visit, data);
    }
}

uint64_t tls_bytes_of(const struct dl_phdr_info& info) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        if (info.dlpi_phdr[i].p_type == PT_TLS) {
            return info.dlpi_phdr[i].p_memsz;
        }
    }
    return 0;
}

}  // namespace cudiag
