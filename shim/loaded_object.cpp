#include "shim/loaded_object.h"

#include <elf.h>
#include <string.h>

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

Tables tables_of(const struct dl_phdr_info& info) {
    Tables tables{};
    const ElfW(Dyn)* dynamic = nullptr;
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
            dynamic = pointer_to<const ElfW(Dyn)>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
        }
    }
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

uint64_t tls_bytes_of(const struct dl_phdr_info& info) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        if (info.dlpi_phdr[i].p_type == PT_TLS) {
            return info.dlpi_phdr[i].p_memsz;
        }
    }
    return 0;
}

}  // namespace cudiag
