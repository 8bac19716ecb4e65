// One opened ELF file, read piecewise with pread: nothing is mapped, so a file cut short under us
// cannot raise SIGBUS. Every offset and length in the file is taken as hostile.
#pragma once

#include <gelf.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/elf/elf_file.h"

namespace cudiag {

class ElfImage {
  public:
    // Opens and checks the headers. A usable image has problem() none or truncated. Not
    // thread-safe; owns its descriptor.
    explicit ElfImage(const std::string& path);
    ~ElfImage();
    ElfImage(const ElfImage&) = delete;
    ElfImage& operator=(const ElfImage&) = delete;

    bool usable() const { return elf_ != nullptr; }

    ElfProblem problem() const { return problem_; }

    const std::string& detail() const { return detail_; }

    const GElf_Ehdr& header() const { return header_; }

    const std::vector<GElf_Phdr>& segments() const { return segments_; }

    std::uint64_t size() const { return size_; }

    Elf* handle() const { return elf_; }

    // File offset of a virtual address by the PT_LOADs that hold it, or nothing.
    std::optional<std::uint64_t> offset_of(std::uint64_t address) const;

    // At most `limit` bytes at a file offset, converted to this machine's byte order as `type`;
    // nullptr past the end of the file. Lives as long as the image.
    Elf_Data* chunk(std::uint64_t offset, std::uint64_t limit, Elf_Type type) const;

    // Raw bytes at a file offset, fewer at the end of the file.
    std::string bytes(std::uint64_t offset, std::uint64_t limit) const;

    // One word or half-word in this machine's byte order.
    std::optional<std::uint32_t> word(std::uint64_t offset) const;
    std::optional<std::uint16_t> half(std::uint64_t offset) const;

    // NUL-terminated string, at most `limit` bytes.
    std::string string_at(std::uint64_t offset, std::uint64_t limit) const;

    // The dynamic section as the loader finds it, by PT_DYNAMIC; empty when there is none.
    const std::vector<GElf_Dyn>& dynamic() const { return dynamic_; }

    // d_val of the last entry with this tag (the loader keeps the last too).
    std::optional<std::uint64_t> tag(std::int64_t tag) const;

    // String of the dynamic string table.
    std::string name(std::uint64_t index) const;

  private:
    std::string_view view(std::uint64_t offset,
                          std::uint64_t limit) const;  // valid until the next call
    bool foreign_order() const;
    void describe_non_elf();
    bool read_segments();
    void read_dynamic();
    void check_length();

    int fd_ = -1;
    Elf* elf_ = nullptr;
    std::uint64_t size_ = 0;
    GElf_Ehdr header_ = {};
    std::vector<GElf_Phdr> segments_;
    std::vector<GElf_Dyn> dynamic_;
    std::optional<std::uint64_t> strings_;  // file offset of the dynamic string table
    std::uint64_t strings_size_ = 0;
    mutable std::string window_;  // the part of the file last looked at
    mutable std::uint64_t window_start_ = 0;
    ElfProblem problem_ = ElfProblem::none;
    std::string detail_;
};

}  // namespace cudiag
