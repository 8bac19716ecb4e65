#include "diagnose/cuda/core_dump.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "diagnose/cuda/device_functions.h"
#include "diagnose/cuda/device_lines.h"
#include "diagnose/elf/elf_image.h"
#include "diagnose/elf/little_endian.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

constexpr std::uint16_t kCudaMachine = 190;
constexpr std::size_t kMostKept = 256;
constexpr std::uint64_t kMostRows = 1U << 23;  // eight GPUs that are full have 2 million threads
constexpr std::uint64_t kMostOfAnImage = std::uint64_t{1} << 30;

// Section types (cudacoredump.h, CudbgSectionHeaderTypes).
enum class Kind : std::uint32_t {
    relocated_image = 0x80000007,
    devices = 0x80000009,
    contexts = 0x8000000a,
    multiprocessors = 0x8000000b,
    grids = 0x8000000c,
    blocks = 0x8000000d,
    warps = 0x8000000e,
    threads = 0x8000000f,
    modules = 0x80000010,
    origin = 0x80000016,
};

// A field of a row: where it begins, as every driver has it.
struct Field8 {
    std::size_t offset;
};

struct Field4 {
    std::size_t offset;
};

// Rows of one table; with its number, by which those below it refer to it.
class Table {
  public:
    Table() = default;

    Table(std::uint32_t number, std::string bytes, std::size_t row)
        : number_{number}, bytes_{std::move(bytes)}, row_{row} {}

    std::uint32_t number() const { return number_; }

    std::size_t rows() const { return row_ == 0 ? 0 : bytes_.size() / row_; }

    // 0 where the driver that wrote the file had no such field yet.
    std::uint64_t at(std::size_t row, Field8 field) const {
        return number_at<std::uint64_t>(view(row), field.offset);
    }

    std::uint32_t at(std::size_t row, Field4 field) const {
        return number_at<std::uint32_t>(view(row), field.offset);
    }

    // x, y and z.
    std::array<std::uint64_t, 3> three_at(std::size_t row, Field4 first) const {
        return {at(row, first), at(row, Field4{first.offset + 4}),
                at(row, Field4{first.offset + 8})};
    }

  private:
    std::string_view view(std::size_t row) const {
        return std::string_view{bytes_}.substr(row * row_, row_);
    }

    std::uint32_t number_ = 0;
    std::string bytes_;
    std::size_t row_ = 0;
};

// The sections by what they are and what they belong to. Tables and images do not overlap in a
// core, so that together they cannot have more bytes than the file (images are read twice, for
// names and for lines): a file that claims so is not followed further.
class Sections {
  public:
    explicit Sections(const ElfImage& image) : image_{image}, left_{2 * image.size()} {
        std::size_t count = 0;
        if (elf_getshdrnum(image.handle(), &count) != 0) {
            return;
        }
        std::size_t names = 0;
        elf_getshdrstrndx(image.handle(), &names);
        for (std::size_t i = 1; i < count; ++i) {
            GElf_Shdr header = {};
            Elf_Scn* section = elf_getscn(image.handle(), i);
            if (section == nullptr || gelf_getshdr(section, &header) == nullptr) {
                break;
            }
            headers_.emplace(Key{header.sh_type, header.sh_link, header.sh_info},
                             Place{static_cast<std::uint32_t>(i), header});
            if (header.sh_type == SHT_STRTAB && i != names) {
                strings_ = header;
            }
        }
    }

    bool empty() const { return headers_.empty(); }

    // The rows of that kind that belong to a row of another table; none if there is no such table,
    // or if its rows are shorter than any driver's.
    Table table(Kind kind, std::uint32_t of, std::uint64_t row, std::size_t least) {
        const auto found = find(kind, of, row);
        if (!found) {
            return {};
        }
        // What stands alone has no size of a row (driver 580).
        const std::uint64_t length =
            found->header.sh_entsize != 0 ? found->header.sh_entsize : found->header.sh_size;
        if (length < least || length > kLongestRow) {
            return {};
        }
        const std::uint64_t rows = found->header.sh_size / length;
        rows_ += std::min(rows, kMostRows);
        if (rows_ > kMostRows) {
            return {};
        }
        return {found->number, bytes_of(found->header), length};
    }

    // The code of a module, an ELF file by itself.
    std::string image(std::uint32_t of, std::uint64_t row) {
        const auto found = find(Kind::relocated_image, of, row);
        return found && found->header.sh_size <= kMostOfAnImage ? bytes_of(found->header)
                                                                : std::string{};
    }

    std::string string(std::uint64_t index) const {
        constexpr std::uint64_t kLongest = 256;
        return index < strings_.sh_size
                   ? image_.string_at(strings_.sh_offset + index,
                                      std::min(kLongest, strings_.sh_size - index))
                   : std::string{};
    }

  private:
    static constexpr std::uint64_t kLongestRow = 1U << 12;

    using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // type, link, info

    struct Place {
        std::uint32_t number;
        GElf_Shdr header;
    };

    std::optional<Place> find(Kind kind, std::uint32_t of, std::uint64_t row) const {
        const auto found = headers_.find(
            Key{static_cast<std::uint32_t>(kind), of, static_cast<std::uint32_t>(row)});
        return found == headers_.end() ? std::nullopt : std::optional<Place>{found->second};
    }

    std::string bytes_of(const GElf_Shdr& header) {
        if (header.sh_size > left_) {
            return {};
        }
        left_ -= header.sh_size;
        return image_.bytes(header.sh_offset, header.sh_size);
    }

    const ElfImage& image_;
    std::map<Key, Place> headers_;
    GElf_Shdr strings_ = {};
    std::uint64_t left_ = 0;  // bytes
    std::uint64_t rows_ = 0;
};

// The code of all modules; each is read when it is first looked into.
class Code {
  public:
    Code(Sections& sections, std::uint32_t devices, std::size_t device_count)
        : sections_{sections} {
        for (std::size_t device = 0; device < device_count; ++device) {
            const Table contexts = sections.table(Kind::contexts, devices, device, 40);
            for (std::size_t context = 0; context < contexts.rows(); ++context) {
                const Table modules = sections.table(Kind::modules, contexts.number(), context, 8);
                for (std::size_t module = 0; module < modules.rows(); ++module) {
                    by_handle_.emplace(modules.at(module, Field8{0}), modules_.size());
                    modules_.push_back({modules.number(), module, std::nullopt, std::nullopt});
                }
            }
        }
    }

    // Where an address is, in the module with that handle if it is there.
    std::optional<DevicePlace> place_of(std::uint64_t address, std::uint64_t handle) {
        Module* module = module_of(address, handle);
        return module == nullptr ? std::nullopt : functions_of(*module).place_of(address);
    }

    std::string source_of(std::uint64_t address, std::uint64_t handle) {
        Module* module = module_of(address, handle);
        if (module == nullptr) {
            return {};
        }
        if (!module->lines) {
            module->lines.emplace(sections_.image(module->table, module->row));
        }
        return module->lines->source_of(address);
    }

  private:
    struct Module {
        std::uint32_t table;
        std::uint64_t row;
        std::optional<DeviceFunctions> functions;
        std::optional<DeviceLines> lines;
    };

    // Threads stand at few places: each is looked for once.
    Module* module_of(std::uint64_t address, std::uint64_t handle) {
        const auto [known, is_new] = by_address_.emplace(address, nullptr);
        if (is_new && address != 0) {
            known->second = find_module(address, handle);
        }
        return known->second;
    }

    Module* find_module(std::uint64_t address, std::uint64_t handle) {
        const auto known = by_handle_.find(handle);
        if (known != by_handle_.end() && functions_of(modules_[known->second]).place_of(address)) {
            return &modules_[known->second];
        }
        const auto found = std::find_if(modules_.begin(), modules_.end(), [&](Module& module) {
            return functions_of(module).place_of(address).has_value();
        });
        return found == modules_.end() ? nullptr : &*found;
    }

    DeviceFunctions& functions_of(Module& module) {
        if (!module.functions) {
            module.functions.emplace(sections_.image(module.table, module.row));
        }
        return *module.functions;
    }

    Sections& sections_;
    std::vector<Module> modules_;
    std::map<std::uint64_t, std::size_t> by_handle_;
    std::map<std::uint64_t, Module*> by_address_;
};

struct Grid {
    std::uint64_t module = 0, entry = 0;
    std::array<std::uint64_t, 3> grid{}, block{};
};

using Grids = std::map<std::uint64_t, Grid>;

Grids grids_of(const Table& table) {
    Grids grids;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        grids.emplace(table.at(row, Field8{0}), Grid{.module = table.at(row, Field8{32}),
                                                     .entry = table.at(row, Field8{24}),
                                                     .grid = table.three_at(row, Field4{72}),
                                                     .block = table.three_at(row, Field4{84})});
    }
    return grids;
}

// Collects the exceptions of one file.
class Reader {
  public:
    Reader(Sections& sections, GpuCore& core)
        : sections_{sections},
          core_{core},
          devices_{sections.table(Kind::devices, 0, 0, 72)},
          code_{sections, devices_.number(), devices_.rows()} {}

    bool has_devices() const { return devices_.rows() != 0; }

    void read() {
        read_origin();
        for (std::size_t device = 0; device < devices_.rows(); ++device) {
            read_device(device);
        }
        // A trap is no exception to the hardware: what tells it is the warp that has stopped.
        if (core_.exceptions.empty()) {
            core_.exceptions = std::move(stopped_);
            core_.threads = stopped_threads_;
            name_device(stopped_on_);
        }
    }

  private:
    void read_origin() {
        const Table origin = sections_.table(Kind::origin, 0, 0, 32);
        if (origin.rows() == 0) {
            return;
        }
        core_.generator = sections_.string(origin.at(0, Field8{0}));
        core_.driver = fmt::format("{}.{:02}", origin.at(0, Field4{8}), origin.at(0, Field4{12}));
        core_.cuda = fmt::format("{}.{}", origin.at(0, Field4{16}), origin.at(0, Field4{20}));
        core_.timestamp_s = origin.at(0, Field4{28});
    }

    void read_device(std::size_t device) {
        const Grids grids = grids_of(sections_.table(Kind::grids, devices_.number(), device, 104));
        const Table sms = sections_.table(Kind::multiprocessors, devices_.number(), device, 8);
        for (std::size_t sm = 0; sm < sms.rows(); ++sm) {
            const std::uint64_t before = core_.threads;
            read_blocks(device, sms, sm, grids);
            const std::uint32_t code = sms.at(sm, Field4{8});
            // Threads that are still there and have no exception may be of other kernels.
            if (code != 0 && core_.threads == before) {
                GpuException kept{.code = code, .sm = sms.at(sm, Field4{0})};
                kept.pc = sms.at(sm, Field4{12}) != 0 ? sms.at(sm, Field8{16}) : 0;
                locate(kept, nullptr, true);
                keep(std::move(kept), device);
            }
        }
    }

    void read_blocks(std::size_t device, const Table& sms, std::size_t sm, const Grids& grids) {
        const Table blocks = sections_.table(Kind::blocks, sms.number(), sm, 24);
        for (std::size_t block = 0; block < blocks.rows(); ++block) {
            const auto grid = grids.find(blocks.at(block, Field8{0}));
            GpuException like{.sm = sms.at(sm, Field4{0}), .thread_known = true};
            like.block_index = blocks.three_at(block, Field4{8});
            const Table warps = sections_.table(Kind::warps, blocks.number(), block, 32);
            for (std::size_t warp = 0; warp < warps.rows(); ++warp) {
                read_warp(device, warps, warp, grid == grids.end() ? nullptr : &grid->second, like);
            }
        }
    }

    void read_warp(std::size_t device, const Table& warps, std::size_t warp, const Grid* grid,
                   const GpuException& like) {
        const std::uint32_t active = warps.at(warp, Field4{16});
        const bool broken = warps.at(warp, Field4{20}) != 0;
        const Table lanes = sections_.table(Kind::threads, warps.number(), warp, 48);
        for (std::size_t row = 0; row < lanes.rows(); ++row) {
            const std::uint32_t lane = lanes.at(row, Field4{16});
            const std::uint32_t code = lanes.at(row, Field4{32});
            const bool stopped = broken && lane < 32 && (active >> lane & 1) != 0;
            if (code == 0 && !stopped) {
                continue;
            }
            GpuException thread = like;
            thread.code = code;
            thread.thread_index = lanes.three_at(row, Field4{20});
            // Where it stopped may be some instructions behind the one that had the exception.
            const bool exact = code != 0 && warps.at(warp, Field4{24}) != 0;
            thread.pc = exact ? warps.at(warp, Field8{0}) : lanes.at(row, Field8{0});
            if (code != 0) {
                ++core_.threads;
            } else if (++stopped_threads_ == 1) {
                stopped_on_ = device;
            }
            if ((code != 0 ? core_.exceptions : stopped_).size() < kMostKept) {
                locate(thread, grid, exact);
                keep(std::move(thread), device);
            }
        }
    }

    // `exact`: the pc is that of the instruction at fault; else it is where the thread would have
    // gone on, behind the last instruction that it had begun.
    void locate(GpuException& exception, const Grid* grid, bool exact) {
        const std::uint64_t handle = grid == nullptr ? 0 : grid->module;
        if (const auto place = code_.place_of(exception.pc, handle)) {
            exception.kernel = place->kernel;
            exception.function = place->function;
            exception.offset = place->offset;
            const bool before = !exact && place->offset != 0;
            exception.source = code_.source_of(exception.pc - (before ? 1 : 0), handle);
        }
        if (grid != nullptr) {
            exception.grid = grid->grid;
            exception.block = grid->block;
            if (const auto entry = code_.place_of(grid->entry, handle)) {
                exception.kernel = entry->kernel;
            }
        }
    }

    void keep(GpuException exception, std::size_t device) {
        if (exception.code == 0) {
            stopped_.push_back(std::move(exception));
        } else if (core_.exceptions.size() < kMostKept) {
            if (core_.exceptions.empty()) {
                name_device(device);
            }
            core_.exceptions.push_back(std::move(exception));
        }
    }

    void name_device(std::size_t device) {
        core_.device =
            device < devices_.rows() ? sections_.string(devices_.at(device, Field8{0})) : "";
    }

    Sections& sections_;
    GpuCore& core_;
    Table devices_;
    Code code_;
    std::vector<GpuException> stopped_;  // at a trap
    std::uint64_t stopped_threads_ = 0;
    std::size_t stopped_on_ = 0;  // the device of the first
};

}  // namespace

GpuCore read_gpu_core(const std::string& path) {
    GpuCore core;
    core.path = path;
    const ElfImage image{path};
    if (!image.usable()) {
        core.problem = image.detail();
        return core;
    }
    if (image.header().e_machine != kCudaMachine || image.header().e_type != ET_CORE) {
        core.problem = say("it is no core dump of a GPU");
        return core;
    }
    Sections sections{image};
    Reader reader{sections, core};
    if (!reader.has_devices()) {
        core.problem = say("its tables are not there: it was cut short, or is damaged");
        return core;
    }
    reader.read();
    return core;
}

}  // namespace cudiag
