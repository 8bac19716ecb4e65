// What CUDA builds need, and what their tools refuse: headers, link names, nvcc releases and the
// texts of failed builds. Data from knowledge/{headers,toolkits,build_texts}.json, compiled in;
// each entry names its source. docs/knowledge.md tells how it is written, checked and extended.
// All functions are thread-safe; pointers stay valid for ever.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/knowledge/knowledge.h"
#include "diagnose/knowledge/text_pattern.h"

namespace cudiag {

// The wheel of one CUDA major that carries headers, and what it has for the linker.
struct HeaderWheel {
    int cuda_major = 0;
    std::string package;            // "nvidia-cusparse-cu12"
    std::string include_directory;  // in site-packages: "nvidia/cusparse/include"
    std::string library_directory;  // "nvidia/cusparse/lib"; "" if it has no library to link with
    std::vector<std::string> library_files;  // "libcusparse.so.12": wheels lack the libX.so link
    std::string spec;  // "==9.*" where its versions don't follow CUDA's; "" for any
    // CUDA release -> the wheel's version in it: {"12.4", "12.3.1.170"}. Empty where they don't
    // follow CUDA's.
    std::map<std::string, std::string, std::less<>> versions;
    std::string source;
};

// Who owns some headers and link names: one set of development packages.
struct HeaderOwner {
    std::string library;      // "cusparse"
    std::string description;  // "cuSPARSE, sparse linear algebra"
    // As they stand in an #include: "cusparse.h", or a directory with all below it, "thrust/".
    std::vector<std::string> headers;
    std::vector<std::string> links;     // "cusparse" for -lcusparse, libcusparse.so
    std::vector<std::string> archives;  // "cudart_static" for -lcudart_static, libcudart_static.a
    std::vector<HeaderWheel> wheels;    // at most one of each CUDA major
    std::vector<Provider> providers;  // conda, apt and image with patterns; see header_providers()
    std::vector<std::string> notes;
    std::string cuda_from, cuda_to;  // CUDA releases that have it, both included; "" open
    bool cuda = false;               // part of the CUDA toolkit or a library of NVIDIA beside it
    bool stubs = false;  // what is linked with is a stub: it lies in lib64/stubs of the toolkit
    std::string source;
};

// By the name in the #include: "cusparse.h", "thrust/complex.h". An exact name goes before a
// directory, the longest directory before others. nullptr for what is not known.
const HeaderOwner* header_owner(std::string_view header);

// The owner itself by its name: "cusparse".
const HeaderOwner* header_owner_named(std::string_view library);

// What brings the headers (and the libX.so to link with) for one CUDA release: "13.0"; "13" or
// "13.x" stand for the newest known of it, "" for the newest of all. Packages and specs are filled
// in. Empty for a release that does not have it. pip is left out where no wheel of that release is
// known, and is exactly what torch pins when `torch_version` ("2.13.0+cu130") is of the same CUDA
// release. In the order pip, conda, apt, image.
std::vector<Provider> header_providers(const HeaderOwner& owner, std::string_view cuda_release,
                                       std::string_view torch_version = {});

// The wheel of a CUDA release's major; nullptr if there is none.
const HeaderWheel* header_wheel(const HeaderOwner& owner, std::string_view cuda_release);

// Headers that one includer needs together: who lacks one of them lacks the next one as well.
struct HeaderGroup {
    std::string name;                        // "torch-cuda"
    std::vector<std::string> included_by;    // where the include stands: "ATen/cuda/"
    std::vector<std::string> headers;        // "cusparse.h", "cublas_v2.h", ...
    std::vector<const HeaderOwner*> owners;  // of these headers, each once
    std::string why;
    std::string source;
};

// The group that a missing header belongs to, by the path of the file that includes it
// ("/x/torch/include/ATen/cuda/CUDAContextLight.h"). nullptr if it stands alone.
const HeaderGroup* header_group(std::string_view header, std::string_view included_by);

// One provider a manager that has them all, for a single command: see install_command() below.
// A manager that lacks one of the owners is left out.
struct ProviderSet {
    std::string manager;
    std::vector<Provider> providers;
};

std::vector<ProviderSet> provider_sets(const std::vector<const HeaderOwner*>& owners,
                                       std::string_view cuda_release,
                                       std::string_view torch_version = {});

// One command for all of a set: "apt-get install libcusparse-dev-13-0 libcublas-dev-13-0". "" for
// managers that nothing installs from.
std::string install_command(const ProviderSet& set, std::string_view python = {});

// A name that ld was asked for with -l.
struct Linkable {
    std::string name;                    // "cudart"
    std::string file;                    // "libcudart.so"
    const HeaderOwner* owner = nullptr;  // never null
    bool stub = false;  // -lcuda, -lnvidia-ml: only the toolkit's stubs directory has it
};

// By the name after -l ("cudart", "python3.11") or the file ("libcudart.so"); nullptr if not known.
const Linkable* linkable(std::string_view name);

// The file of it that the wheel of a CUDA release holds, in site-packages:
// "nvidia/cu13/lib/libcudart.so.13". For ld it lacks the link `file` beside it. "" if no wheel has
// it.
std::string wheel_library(const Linkable& linkable, std::string_view cuda_release);

// One release of nvcc: what its own checks accept.
struct ToolkitRelease {
    std::string release;  // "11.8"
    // Majors, both ends included. crt/host_config.h refuses newer ones; the oldest are only
    // documented.
    int gcc_oldest = 0, gcc_newest = 0;
    int clang_oldest = 0, clang_newest = 0;
    std::vector<std::string> architectures;  // "75", "90", "90a" ...; empty: not known
    std::vector<std::string> standards;      // of -std, oldest first: "c++03", ... "c++20"
    std::string newest_standard;             // "c++20"
    std::vector<std::string> notes;
    bool checked = false;  // its files were opened
    std::string source;
};

// By "11.8", "11.8.89", "V13.0.88". nullptr for a release that is not known.
const ToolkitRelease* toolkit_release(std::string_view release);
std::vector<const ToolkitRelease*> all_toolkit_releases();  // the oldest first

// "compute_70", "sm_90a", "7.0", "9.0a", "70", "8.6+PTX" -> "70", "90a", "86": as in
// ToolkitRelease::architectures. "" for something else.
std::string architecture_name(std::string_view text);

// Whether an nvcc release compiles for an architecture in any of these forms; nothing if one of
// them is not known.
std::optional<bool> compiles_for(const ToolkitRelease& toolkit, std::string_view architecture);

// Two programs that do not work together though no check refuses them.
struct BadPair {
    std::string name;          // "nvcc 11.5, gcc 11"
    std::string a;             // "nvcc"
    std::string a_from, a_to;  // releases of a, both ends included; "" open
    std::string b;             // "gcc" (its libstdc++ headers), "glibc"
    std::string b_from, b_to;
    std::string header;                 // where it breaks: "bits/std_function.h"; "" anywhere
    std::vector<std::string> symptoms;  // literal pieces of what the compiler prints
    std::string why;
    std::vector<std::string> remedies;  // best first, each one sentence
    std::string source;
};

// Those that fit two releases: ("nvcc", "11.5", "gcc", "11.4.0").
std::vector<const BadPair*> bad_pairs(std::string_view a, std::string_view a_release,
                                      std::string_view b, std::string_view b_release);
std::vector<const BadPair*> all_bad_pairs();

// A text that tells of a failed build, for builds of which nothing else is known.
struct BuildTextPattern : TextPattern {  // searched in one line
    std::string slug;                    // "build-missing-compiler"
    std::vector<std::string> types;      // exception types, without module; empty: any
    std::string function;                // a frame of the traceback must have this; "" none
    bool known_extension = false;        // the group "module" must be of package_of_extension()
    std::string meaning;                 // one sentence
};

// A pattern found in a message.
struct BuildText {
    const BuildTextPattern* pattern = nullptr;
    TextValues values;       // by evidence key
    std::string line;        // the line that it stands in
    std::size_t offset = 0;  // of that line in the message
};

// All that a final exception's text tells, in the order of the text: the first error is the cause,
// later ones may be its consequences. `type` with or without its module; `functions` are those of
// the traceback. A line is judged by its first kSearchedBytes. Where an extension is missing, the
// value "package" is added.
std::vector<BuildText> build_texts_of(std::string_view type, std::string_view message,
                                      const std::vector<std::string>& functions = {});

// The first of them.
std::optional<BuildText> build_text_of(std::string_view type, std::string_view message,
                                       const std::vector<std::string>& functions = {});
std::vector<const BuildTextPattern*> all_build_texts();

// A module that only a build with extensions has: "amp_C" -> "apex". "" if not known.
std::string package_of_extension(std::string_view module);

// Everything known of headers, for tests.
std::vector<const HeaderOwner*> all_header_owners();
std::vector<const HeaderGroup*> all_header_groups();

// As knowledge_problems(), of these three files.
std::vector<std::string> toolchain_problems();

}  // namespace cudiag
