// The dynamic symbol table, found as the loader finds it: through the dynamic section, never
// through section headers.
#include <algorithm>
#include <map>

#include "diagnose/elf/elf_image.h"
#include "diagnose/elf/versions.h"

namespace cudiag {
namespace {

constexpr std::uint16_t kHidden = 0x8000;
constexpr std::uint32_t kNone = 0xffffffff;

struct Tables {
    std::uint64_t symbols = 0;  // file offsets
    std::uint64_t symbol_size = 0;
    std::optional<std::uint64_t> versions;
};

struct GnuHash {
    std::uint64_t buckets = 0, chains = 0;  // file offsets
    std::uint32_t bucket_count = 0, first_symbol = 0;
};

std::optional<Tables> tables_of(const ElfImage& image) {
    const auto symbols = image.tag(DT_SYMTAB);
    const auto offset = symbols ? image.offset_of(*symbols) : std::nullopt;
    if (!offset) {
        return std::nullopt;
    }
    const bool wide = image.header().e_ident[EI_CLASS] == ELFCLASS64;
    const auto versions = image.tag(DT_VERSYM);
    return Tables{*offset, wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym),
                  versions ? image.offset_of(*versions) : std::nullopt};
}

std::optional<GnuHash> gnu_hash_of(const ElfImage& image) {
    const auto address = image.tag(DT_GNU_HASH);
    const auto start = address ? image.offset_of(*address) : std::nullopt;
    if (!start) {
        return std::nullopt;
    }
    const auto bucket_count = image.word(*start);
    const auto first_symbol = image.word(*start + 4);
    const auto bloom_words = image.word(*start + 8);
    if (!bucket_count || !first_symbol || !bloom_words || *bucket_count == 0) {
        return std::nullopt;
    }
    const std::uint64_t bloom_word = image.header().e_ident[EI_CLASS] == ELFCLASS64 ? 8 : 4;
    GnuHash hash;
    hash.bucket_count = *bucket_count;
    hash.first_symbol = *first_symbol;
    hash.buckets = *start + 16 + bloom_word * *bloom_words;
    hash.chains = hash.buckets + std::uint64_t{4} * *bucket_count;
    return hash;
}

std::uint32_t gnu_hash(std::string_view name) {
    std::uint32_t hash = 5381;
    for (const char c : name) {
        hash = hash * 33 + static_cast<unsigned char>(c);
    }
    return hash;
}

// The hash tables are the only place that tells how long the symbol table is. Undefined symbols
// come before first_symbol, so a table without defined ones has exactly that many.
std::uint64_t symbol_count(const ElfImage& image, const Tables& tables) {
    const std::uint64_t most = (image.size() - tables.symbols) / tables.symbol_size;
    if (const auto address = image.tag(DT_HASH)) {
        const auto start = image.offset_of(*address);
        const auto chains = start ? image.word(*start + 4) : std::nullopt;
        if (chains) {
            return std::min<std::uint64_t>(*chains, most);
        }
    }
    const auto hash = gnu_hash_of(image);
    if (!hash) {
        return 0;
    }
    std::uint32_t last = 0;
    for (std::uint32_t i = 0; i < hash->bucket_count; ++i) {
        const auto bucket = image.word(hash->buckets + std::uint64_t{4} * i);
        if (!bucket) {
            break;
        }
        last = std::max(last, *bucket);
    }
    if (last < hash->first_symbol) {
        return std::min<std::uint64_t>(hash->first_symbol, most);
    }
    while (last < most) {
        const auto link = image.word(hash->chains + std::uint64_t{4} * (last - hash->first_symbol));
        ++last;
        if (!link || (*link & 1) != 0) {
            break;
        }
    }
    return std::min<std::uint64_t>(last, most);
}

struct Versions {
    std::map<std::uint16_t, NeededVersion> needed, defined;
    std::uint16_t base = kHidden;
};

Versions versions_of(const ElfImage& image) {
    Versions versions;
    for (const NumberedVersion& needed : needed_versions(image)) {
        versions.needed.emplace(needed.number, needed.version);
    }
    for (const NumberedVersion& defined : defined_versions(image)) {
        if (defined.base) {
            versions.base = defined.number;
        } else {
            versions.defined.emplace(defined.number, defined.version);
        }
    }
    return versions;
}

std::optional<GElf_Sym> symbol_at(const ElfImage& image, const Tables& tables,
                                  std::uint64_t index) {
    const std::uint64_t offset = tables.symbols + index * tables.symbol_size;
    GElf_Sym symbol = {};
    const auto name = image.word(offset);
    // st_info and st_shndx stand at other places in the 32-bit layout.
    const bool wide = tables.symbol_size == sizeof(Elf64_Sym);
    const std::string info = image.bytes(offset + (wide ? 4 : 12), 1);
    const auto section = image.half(offset + (wide ? 6 : 14));
    if (!name || info.empty() || !section) {
        return std::nullopt;
    }
    symbol.st_name = *name;
    symbol.st_info = static_cast<unsigned char>(info[0]);
    symbol.st_shndx = *section;
    return symbol;
}

void set_version(const Versions& versions, std::uint16_t raw, DynamicSymbol& symbol) {
    const auto number = static_cast<std::uint16_t>(raw & ~kHidden);
    if (symbol.defined) {
        const auto found = versions.defined.find(number);
        if (found != versions.defined.end()) {
            symbol.version = found->second.version;
            symbol.hidden_version = (raw & kHidden) != 0;
        }
        return;
    }
    const auto found = versions.needed.find(number);
    if (found != versions.needed.end()) {
        symbol.version = found->second.version;
        symbol.version_file = found->second.file;
    }
}

bool is_local(const GElf_Sym& symbol) {
    return GELF_ST_BIND(symbol.st_info) == STB_LOCAL;
}

bool version_matches(const Versions& versions, const ElfImage& image, const Tables& tables,
                     std::uint64_t index, std::string_view wanted) {
    if (wanted.empty() || !tables.versions || versions.defined.empty()) {
        return true;  // a library without versions satisfies any
    }
    const auto raw = image.half(*tables.versions + 2 * index);
    const auto found =
        versions.defined.find(static_cast<std::uint16_t>(raw.value_or(0) & ~kHidden));
    return found != versions.defined.end() && found->second.version == wanted;
}

}  // namespace

std::vector<DynamicSymbol> dynamic_symbols(const std::string& path) {
    std::vector<DynamicSymbol> result;
    const ElfImage image(path);
    const auto tables = image.usable() ? tables_of(image) : std::nullopt;
    if (!tables) {
        return result;
    }
    const Versions versions = versions_of(image);
    const std::uint64_t count = symbol_count(image, *tables);
    Elf_Data* symbols = image.chunk(tables->symbols, count * tables->symbol_size, ELF_T_SYM);
    Elf_Data* numbers =
        tables->versions ? image.chunk(*tables->versions, count * 2, ELF_T_HALF) : nullptr;
    const auto strings = image.tag(DT_STRTAB);
    const auto offset = strings ? image.offset_of(*strings) : std::nullopt;
    // One read of the whole table: symbols refer to it in no order.
    const std::string names =
        offset ? image.bytes(*offset, image.tag(DT_STRSZ).value_or(0)) : std::string{};
    for (std::uint64_t i = 1; symbols != nullptr && i < count; ++i) {
        GElf_Sym raw = {};
        if (gelf_getsym(symbols, static_cast<int>(i), &raw) == nullptr) {
            break;
        }
        if (is_local(raw) || raw.st_name >= names.size()) {
            continue;
        }
        DynamicSymbol symbol;
        symbol.name = names.substr(raw.st_name, names.find('\0', raw.st_name) - raw.st_name);
        symbol.defined = raw.st_shndx != SHN_UNDEF;
        symbol.weak = GELF_ST_BIND(raw.st_info) == STB_WEAK;
        if (numbers != nullptr && 2 * i + 2 <= numbers->d_size) {
            set_version(versions, static_cast<const std::uint16_t*>(numbers->d_buf)[i], symbol);
        }
        if (!symbol.name.empty()) {
            result.push_back(std::move(symbol));
        }
    }
    return result;
}

bool exports(const std::string& path, std::string_view symbol, std::string_view version) {
    const ElfImage image(path);
    const auto tables = image.usable() ? tables_of(image) : std::nullopt;
    if (!tables || symbol.empty()) {
        return false;
    }
    const auto hash = gnu_hash_of(image);
    if (!hash) {
        const std::vector<DynamicSymbol> all = dynamic_symbols(path);
        return std::any_of(all.begin(), all.end(), [&](const DynamicSymbol& candidate) {
            return candidate.defined && candidate.name == symbol &&
                   (version.empty() || candidate.version.empty() || candidate.version == version);
        });
    }
    const Versions versions = versions_of(image);
    const std::uint32_t wanted = gnu_hash(symbol);
    const std::uint32_t index =
        image.word(hash->buckets + std::uint64_t{4} * (wanted % hash->bucket_count))
            .value_or(kNone);
    const std::uint64_t most = (image.size() - tables->symbols) / tables->symbol_size;
    for (std::uint64_t i = index; i >= hash->first_symbol && i != 0 && i < most; ++i) {
        const auto link = image.word(hash->chains + 4 * (i - hash->first_symbol));
        if (!link) {
            return false;
        }
        if ((*link | 1) == (wanted | 1)) {
            const auto entry = symbol_at(image, *tables, i);
            if (entry && entry->st_shndx != SHN_UNDEF && !is_local(*entry) &&
                image.name(entry->st_name) == symbol &&
                version_matches(versions, image, *tables, i, version)) {
                return true;
            }
        }
        if ((*link & 1) != 0) {
            return false;
        }
    }
    return false;
}

}  // namespace cudiag
