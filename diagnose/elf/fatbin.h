// What device code a file carries: SASS (in cubins) and PTX, for which architectures.
//
// NVIDIA documents the names of the sections and the wrapper (fatbinary_section.h of nvcc), but not
// what lies in them. This was derived from files made by nvcc 13.0 (-gencode of sm_80, sm_90a,
// sm_100f, sm_120, sm_120a and their PTX; -no-compress, -compress-mode=size and speed, -G,
// -lineinfo, -rdc=true, -dlink, lto_90), by ptxas of 11.8, 12.4, 12.8 and 12.9, by fatbinary of
// 11.8 and libnvfatbin of 12.x, and from the libraries in the wheels of cuBLAS 12.4 to 13.1, NCCL
// 2.18 to 2.29 and torch 2.9; all compared with cuobjdump 13.2 (tests/unit/diagnose/elf):
//
//   fatbin  u32 0xba55ed50, u16 version 1, u16 header size 16, u64 bytes of the images that follow
//   image   +0 u16 kind (1 PTX, 2 cubin, 8 NVVM IR for link-time optimization), +4 u32 header size
//           (0x40 and more: names, options), +8 u64 bytes of the payload; the next image follows.
//           +24 u16 minor, +26 u16 major: of PTX its ISA version. +28 u32 architecture (90).
//           +40 u64 flags: 0x2000 LZ4, 0x8000 zstd (the header itself is never compressed),
//           0x100000 "a", 0x200000 "f". Bits that are not named here were seen, and are not read.
//   cubin   e_machine 190 (EM_CUDA). ABI version 7 (CUDA before 12.8, and until 12.9 up to sm_90a):
//           e_flags 0xff architecture, 0x800 "a". ABI version 8 (sm_100 of 12.8 on, all of 13.0):
//           0xff00 architecture, 0x8 "a", as LLVM's BinaryFormat/ELF.h has them; but ptxas 13.0
//           does not set 0x8 any more. There the section .nv.compat holds the bytes 02 09 01 for
//           "a", and .note.nv.tkinfo the words "-arch sm_100f". cuobjdump calls such a cubin
//           sm_100.
//   wrapper u32 0x466243b1, u32 version, u64 address of the fatbin, in .nvFatBinSegment.
//
// .nv_fatbin holds what the runtime registers, __nv_relfatbin what -rdc=true made and nvlink has
// linked already (its PTX is still what the driver would link from). cuBLAS and cuDNN have fatbins
// in .cask_resource too, which they load by themselves; cuobjdump does not look there. All is
// little-endian.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace cudiag {

// One architecture that a file has code for.
struct DeviceCode {
    bool ptx = false;          // else SASS, unless `lto`
    int sm = 0;                // 90 for sm_90 and compute_90
    std::string variant;       // "a": only that architecture, "f": only its family, ""
    bool lto = false;          // NVVM IR, of which a linker has yet to make SASS
    std::string ptx_version;   // of PTX: "8.4"; "" if it tells none
    bool relocatable = false;  // only among what was compiled with -rdc=true, to be linked

    // "sm_90a", "compute_90", "lto_90", as nvcc's -code takes them.
    std::string name() const;
    std::strong_ordering operator<=>(const DeviceCode&) const = default;
    bool operator==(const DeviceCode&) const = default;
};

// All that an ELF file (library, program, object), a bare fatbin, a cubin or a PTX text carries:
// SASS before PTX, each once; relocatable code only where nothing else is the same. Empty for any
// other file, and for one that cannot be read or has lost its section headers. Reads headers, a
// thousandth of the file; safe on hostile bytes.
std::vector<DeviceCode> device_code_in(const std::string& path);

// The same of the one image at a file offset, as a program hands it to cuModuleLoadData or
// cuLibraryLoadData: a fatbin, a wrapper (whose pointer is looked up among the file's relocations),
// a cubin, or a PTX text. Empty if nothing of the kind begins there.
std::vector<DeviceCode> device_code_at(const std::string& path, std::uint64_t offset);

// "sm_80 sm_90 (SASS), compute_90 (PTX)"; "" for none. Each name once.
std::string device_code_words(const std::vector<DeviceCode>& code);

enum class Runs : std::uint8_t {
    no,
    as_it_is,     // SASS for this device
    after_jit,    // PTX that the driver compiles, if it knows the version: ptx_known_to()
    not_promised  // between a Tegra and another device, and of code that must be linked first
};

// Whether code runs on a device of compute capability `device_sm` (90 for 9.0). SASS of X.m runs on
// X.n with n >= m, PTX on all later devices, neither between Tegra and others (CUDA C++ Programming
// Guide, "Binary Compatibility", "PTX Compatibility"); "a" only on that very architecture, "f" on
// its family: same major, same or later minor (there, "Compute Capability": architecture- and
// family-specific features).
Runs runs_on(const DeviceCode& code, int device_sm);

}  // namespace cudiag
