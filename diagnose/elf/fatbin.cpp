#include "diagnose/elf/fatbin.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "diagnose/elf/elf_image.h"
#include "diagnose/elf/little_endian.h"

namespace cudiag {
namespace {

constexpr std::uint32_t kFatbinMagic = 0xba55ed50;
constexpr std::uint32_t kWrapperMagic = 0x466243b1;
constexpr std::string_view kFatbinMagicBytes{"\x50\xed\x55\xba", 4};
constexpr std::uint64_t kFatbinHeader = 16;
constexpr std::uint64_t kImageHeader = 64;
constexpr std::uint64_t kElf64Header = 64;
constexpr std::uint64_t kElf64Section = 64;
constexpr std::uint16_t kCudaMachine = 190;
// libcublasLt 13 has 5600 images; a file that claims more than this is none of NVIDIA's.
constexpr std::size_t kMostImages = 1U << 18;
constexpr std::size_t kMostSections = 1U << 16;
constexpr std::uint64_t kLongestNote = 4U << 10;
// What stands before .version and .target: comments of the compiler.
constexpr std::uint64_t kLongestPreamble = 16U << 10;

// Saturates: an end beyond every file is as good as an overflow.
std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
    std::uint64_t result = 0;
    return __builtin_add_overflow(a, b, &result) ? UINT64_MAX : result;
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// "sm_90a" at the front of a text, into `code`.
bool read_target(std::string_view text, DeviceCode& code) {
    constexpr std::string_view kPrefix = "sm_";
    constexpr std::size_t kMostDigits = 4;
    if (text.substr(0, kPrefix.size()) != kPrefix) {
        return false;
    }
    std::size_t at = kPrefix.size();
    int sm = 0;
    for (; at < text.size() && is_digit(text[at]) && at < kPrefix.size() + kMostDigits; ++at) {
        sm = sm * 10 + (text[at] - '0');
    }
    code.sm = sm;
    code.variant.clear();
    if (at < text.size() && (text[at] == 'a' || text[at] == 'f')) {
        code.variant = text[at];
    }
    return sm != 0;
}

class Collector {
  public:
    explicit Collector(const ElfImage& image) : image_{image} {}

    // The images of the fatbin at an offset, none of them beyond `limit`. Gives where it ends;
    // nothing if none begins there.
    std::optional<std::uint64_t> fatbin(std::uint64_t offset, std::uint64_t limit,
                                        bool relocatable) {
        const std::string header = image_.bytes(offset, kFatbinHeader);
        const auto header_size = number_at<std::uint16_t>(header, 6);
        if (header.size() < kFatbinHeader || number_at<std::uint32_t>(header, 0) != kFatbinMagic ||
            header_size < kFatbinHeader) {
            return std::nullopt;
        }
        const std::uint64_t begin = sum(offset, header_size);
        const std::uint64_t end = std::min(limit, sum(begin, number_at<std::uint64_t>(header, 8)));
        for (std::uint64_t at = begin; at < end && images_ < kMostImages; ++images_) {
            const std::string image = image_.bytes(at, kImageHeader);
            const auto size = number_at<std::uint32_t>(image, 4);
            if (image.size() < kImageHeader || size < kImageHeader) {
                break;
            }
            image_header(image, relocatable);
            at = sum(sum(at, size), number_at<std::uint64_t>(image, 8));
        }
        return end;
    }

    // All fatbins of a section, whatever lies between them.
    void section(std::uint64_t offset, std::uint64_t size, bool relocatable) {
        const std::uint64_t end = std::min(image_.size(), sum(offset, size));
        std::optional<std::uint64_t> at = find_fatbin(offset, end);
        while (at && images_ < kMostImages) {
            const auto next = fatbin(*at, end, relocatable);
            at = find_fatbin(next.value_or(*at + kFatbinMagicBytes.size()), end);
        }
    }

    // An image as device_code_at() takes them, but no wrapper.
    bool bare(std::uint64_t offset) {
        return fatbin(offset, image_.size(), false).has_value() || cubin(offset) || ptx(offset);
    }

    std::vector<DeviceCode> result() const {
        std::vector<DeviceCode> result;
        for (const DeviceCode& code : found_) {
            DeviceCode linked = code;
            linked.relocatable = false;
            if (!code.relocatable || found_.count(linked) == 0) {
                result.push_back(code);
            }
        }
        return result;
    }

  private:
    void add(DeviceCode code) {
        if (code.sm > 0) {
            found_.insert(std::move(code));
        }
    }

    void image_header(std::string_view image, bool relocatable) {
        constexpr std::uint16_t kPtx = 1;
        constexpr std::uint16_t kCubin = 2;
        constexpr std::uint16_t kNvvm = 8;
        constexpr std::uint64_t kArchitectureOnly = 0x100000;
        constexpr std::uint64_t kFamilyOnly = 0x200000;
        constexpr std::uint32_t kMostSm = 999;
        const auto kind = number_at<std::uint16_t>(image, 0);
        const auto sm = number_at<std::uint32_t>(image, 28);
        const auto flags = number_at<std::uint64_t>(image, 40);
        if ((kind != kPtx && kind != kCubin && kind != kNvvm) || sm > kMostSm) {
            return;
        }
        DeviceCode code;
        code.ptx = kind == kPtx;
        code.lto = kind == kNvvm;
        code.sm = static_cast<int>(sm);
        code.variant = (flags & kArchitectureOnly) != 0 ? "a"
                       : (flags & kFamilyOnly) != 0     ? "f"
                                                        : "";
        code.relocatable = relocatable;
        if (const auto major = number_at<std::uint16_t>(image, 26); code.ptx && major != 0) {
            code.ptx_version = fmt::format("{}.{}", major, number_at<std::uint16_t>(image, 24));
        }
        add(std::move(code));
    }

    bool cubin(std::uint64_t offset) {
        const std::string header = image_.bytes(offset, kElf64Header);
        if (header.size() < kElf64Header || header.compare(0, SELFMAG, ELFMAG) != 0 ||
            number_at<std::uint16_t>(header, 18) != kCudaMachine) {
            return false;
        }
        const bool wide = header[EI_CLASS] == ELFCLASS64;
        const auto flags = number_at<std::uint32_t>(
            header, wide ? offsetof(Elf64_Ehdr, e_flags) : offsetof(Elf32_Ehdr, e_flags));
        DeviceCode code;
        if (header[EI_ABIVERSION] < 8) {
            code.sm = static_cast<int>(flags & 0xff);
            code.variant = (flags & 0x800) != 0 ? "a" : "";
        } else {
            code.sm = static_cast<int>(flags >> 8 & 0xff);
            code.variant = (flags & 0x8) != 0 ? "a" : wide ? told_variant(offset, header) : "";
        }
        add(std::move(code));
        return true;
    }

    // The variant as the sections of a cubin of CUDA 13 tell it.
    std::string told_variant(std::uint64_t offset, std::string_view header) const {
        const std::uint64_t table = sum(offset, number_at<std::uint64_t>(header, 40));
        const auto count =
            std::min<std::size_t>(number_at<std::uint16_t>(header, 60), kMostSections);
        const auto names_index = number_at<std::uint16_t>(header, 62);
        if (number_at<std::uint16_t>(header, 58) != kElf64Section || names_index >= count) {
            return {};
        }
        const std::string sections = image_.bytes(table, count * kElf64Section);
        const auto begin_of = [&](std::size_t index) {
            return sum(offset, number_at<std::uint64_t>(sections, index * kElf64Section + 24));
        };
        std::string words;
        for (std::size_t i = 0; i < count; ++i) {
            const auto name = number_at<std::uint32_t>(sections, i * kElf64Section);
            const std::string called = image_.string_at(sum(begin_of(names_index), name), 32);
            if (called != ".nv.compat" && called != ".note.nv.tkinfo") {
                continue;
            }
            const auto size = number_at<std::uint64_t>(sections, i * kElf64Section + 32);
            const std::string bytes = image_.bytes(begin_of(i), std::min(size, kLongestNote));
            if (called == ".nv.compat" && says_architecture_only(bytes)) {
                return "a";
            }
            if (called == ".note.nv.tkinfo") {
                words = bytes;
            }
        }
        constexpr std::string_view kOption = "-arch ";
        const std::size_t option = words.rfind(kOption);
        DeviceCode told;
        return option != std::string::npos &&
                       read_target(std::string_view{words}.substr(option + kOption.size()), told)
                   ? told.variant
                   : std::string{};
    }

    // Attributes as in .nv.info: a format (1 none, 2 a byte, 3 two bytes, 4 a length and as many),
    // the attribute, the value in at least two bytes.
    static bool says_architecture_only(std::string_view attributes) {
        constexpr std::size_t kHead = 4;
        constexpr std::uint8_t kWithLength = 4;
        constexpr std::uint8_t kByte = 2;
        constexpr std::uint8_t kIsaClass = 9;
        for (std::size_t at = 0; at + kHead <= attributes.size();) {
            const auto format = number_at<std::uint8_t>(attributes, at);
            if (format == kByte && number_at<std::uint8_t>(attributes, at + 1) == kIsaClass &&
                number_at<std::uint8_t>(attributes, at + 2) == 1) {
                return true;
            }
            at +=
                kHead + (format == kWithLength ? number_at<std::uint16_t>(attributes, at + 2) : 0);
        }
        return false;
    }

    bool ptx(std::uint64_t offset) {
        const std::string bytes = image_.bytes(offset, kLongestPreamble);
        std::string_view text{bytes};
        text = text.substr(0, text.find('\0'));
        DeviceCode code;
        code.ptx = true;
        if (!directive(text, ".version")) {
            return false;
        }
        std::size_t end = 0;
        while (end < text.size() && (is_digit(text[end]) || text[end] == '.')) {
            ++end;
        }
        code.ptx_version = text.substr(0, std::min<std::size_t>(end, 8));
        text.remove_prefix(end);
        if (!directive(text, ".target") || !read_target(text, code)) {
            return false;
        }
        add(std::move(code));
        return true;
    }

    static void skip_blanks(std::string_view& text) {
        const auto skip_to = [&text](std::string_view end) {
            const std::size_t at = text.find(end);
            text.remove_prefix(at == std::string_view::npos ? text.size() : at + end.size());
        };
        for (;;) {
            const std::size_t at = text.find_first_not_of(" \t\r\n");
            text.remove_prefix(at == std::string_view::npos ? text.size() : at);
            if (text.substr(0, 2) == "//") {
                skip_to("\n");
            } else if (text.substr(0, 2) == "/*") {
                skip_to("*/");
            } else {
                return;
            }
        }
    }

    // Takes a directive and the blanks around it off the front, if it stands there.
    static bool directive(std::string_view& text, std::string_view name) {
        skip_blanks(text);
        if (text.substr(0, name.size()) != name) {
            return false;
        }
        text.remove_prefix(name.size());
        skip_blanks(text);
        return true;
    }

    // Fatbins mostly follow each other at once: a small look first, then larger ones.
    std::optional<std::uint64_t> find_fatbin(std::uint64_t offset, std::uint64_t end) const {
        constexpr std::uint64_t kLargest = 1U << 20;
        const std::uint64_t overlap = kFatbinMagicBytes.size() - 1;
        for (std::uint64_t window = 64; offset < end; window = std::min(window * 4, kLargest)) {
            const std::string bytes = image_.bytes(offset, std::min(window, end - offset));
            if (const auto at = bytes.find(kFatbinMagicBytes); at != std::string::npos) {
                return offset + at;
            }
            if (bytes.size() <= overlap) {
                break;
            }
            offset += bytes.size() - overlap;
        }
        return std::nullopt;
    }

    const ElfImage& image_;
    std::set<DeviceCode> found_;
    std::size_t images_ = 0;
};

// The address that the loader makes of the pointer at a file offset, less the load address.
std::optional<std::uint64_t> pointer_at(const ElfImage& image, std::uint64_t offset) {
    std::optional<std::uint64_t> address;
    for (const GElf_Phdr& segment : image.segments()) {
        if (segment.p_type == PT_LOAD && offset >= segment.p_offset &&
            offset - segment.p_offset < segment.p_filesz) {
            address = sum(segment.p_vaddr, offset - segment.p_offset);
        }
    }
    if (!address) {
        return std::nullopt;
    }
    const auto table = image.tag(DT_RELA);
    const auto begin = table ? image.offset_of(*table) : std::nullopt;
    const std::uint64_t size = image.tag(DT_RELASZ).value_or(0);
    constexpr std::uint64_t kEntry = sizeof(Elf64_Rela);
    constexpr std::uint64_t kWindow = kEntry << 12;
    for (std::uint64_t at = 0; begin && at < size; at += kWindow) {
        const std::string entries = image.bytes(sum(*begin, at), std::min(kWindow, size - at));
        for (std::size_t entry = 0; entry + kEntry <= entries.size(); entry += kEntry) {
            if (number_at<std::uint64_t>(entries, entry) != *address) {
                continue;
            }
            const auto addend = number_at<std::uint64_t>(entries, entry + 16);
            const std::uint64_t symbol = number_at<std::uint64_t>(entries, entry + 8) >> 32;
            if (symbol == 0) {
                return addend;
            }
            const auto symbols = image.tag(DT_SYMTAB);
            const auto first = symbols ? image.offset_of(*symbols) : std::nullopt;
            if (!first) {
                return std::nullopt;
            }
            const std::string found =
                image.bytes(sum(*first, symbol * sizeof(Elf64_Sym)), sizeof(Elf64_Sym));
            return number_at<std::uint64_t>(found, offsetof(Elf64_Sym, st_value)) + addend;
        }
        if (entries.size() < kWindow) {
            break;
        }
    }
    // A program at a fixed address, or a relocation of DT_RELR: the value stands there.
    return number_at<std::uint64_t>(image.bytes(offset, sizeof(std::uint64_t)), 0);
}

}  // namespace

std::string DeviceCode::name() const {
    return fmt::format("{}{}{}", ptx ? "compute_" : lto ? "lto_" : "sm_", sm, variant);
}

std::vector<DeviceCode> device_code_in(const std::string& path) {
    const ElfImage image(path);
    Collector found(image);
    if (!image.usable() || image.header().e_machine == kCudaMachine) {
        found.bare(0);
        return found.result();
    }
    std::size_t names = 0;
    if (elf_getshdrstrndx(image.handle(), &names) != 0) {
        return {};
    }
    Elf_Scn* section = nullptr;
    while ((section = elf_nextscn(image.handle(), section)) != nullptr) {
        GElf_Shdr header = {};
        const char* name = gelf_getshdr(section, &header) == nullptr
                               ? nullptr
                               : elf_strptr(image.handle(), names, header.sh_name);
        if (name == nullptr || header.sh_type != SHT_PROGBITS) {
            continue;
        }
        const std::string_view called(name);
        const bool relocatable = called == "__nv_relfatbin";
        if (relocatable || called == ".nv_fatbin" || called == ".cask_resource") {
            found.section(header.sh_offset, header.sh_size, relocatable);
        }
    }
    return found.result();
}

std::vector<DeviceCode> device_code_at(const std::string& path, std::uint64_t offset) {
    constexpr std::uint64_t kPointer = 8;
    const ElfImage image(path);
    Collector found(image);
    const std::string head = image.bytes(offset, kPointer + sizeof(std::uint64_t));
    if (number_at<std::uint32_t>(head, 0) != kWrapperMagic) {
        found.bare(offset);
        return found.result();
    }
    if (const auto address = pointer_at(image, sum(offset, kPointer))) {
        if (const auto target = image.offset_of(*address)) {
            found.fatbin(*target, image.size(), false);
        }
    }
    return found.result();
}

std::string device_code_words(const std::vector<DeviceCode>& code) {
    std::string words;
    for (const char* kind : {"SASS", "PTX", "LTO-IR"}) {
        std::set<std::string> seen;
        std::string names;
        for (const DeviceCode& one : code) {
            if (kind == std::string_view{one.ptx   ? "PTX"
                                         : one.lto ? "LTO-IR"
                                                   : "SASS"} &&
                seen.insert(one.name()).second) {
                names += one.name() + " ";
            }
        }
        if (!names.empty()) {
            words += fmt::format("{}{}({})", words.empty() ? "" : ", ", names, kind);
        }
    }
    return words;
}

Runs runs_on(const DeviceCode& code, int device_sm) {
    // Jetson: TK1, TX1 and Nano, TX2, Xavier, Orin, Thor (whose 10.1 became 11.0 in CUDA 13).
    // NVIDIA, "CUDA GPU Compute Capability"; PTX ISA 9.0, release notes.
    constexpr int kTegra[] = {32, 53, 62, 72, 87, 101, 110};
    const auto tegra = [&kTegra](int sm) {
        return std::find(std::begin(kTegra), std::end(kTegra), sm) != std::end(kTegra);
    };
    const bool renamed =
        (code.sm == 101 && device_sm == 110) || (code.sm == 110 && device_sm == 101);
    if (code.lto || renamed) {
        return Runs::not_promised;
    }
    const Runs yes = code.ptx ? Runs::after_jit : Runs::as_it_is;
    if (code.sm == device_sm) {
        return yes;
    }
    const bool same_major = code.sm / 10 == device_sm / 10;
    if (code.variant == "a" || code.sm > device_sm ||
        (!same_major && (!code.ptx || code.variant == "f"))) {
        return Runs::no;
    }
    return !code.ptx && (tegra(code.sm) || tegra(device_sm)) ? Runs::not_promised : yes;
}

}  // namespace cudiag
