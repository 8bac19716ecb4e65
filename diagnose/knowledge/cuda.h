// What is known of CUDA's error codes, of the drivers that its releases need, and of the words in
// which programs hand an error on: data from
// knowledge/{cuda_errors,drivers,cuda_texts,cuda_unavailable}.json.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/knowledge/text_pattern.h"

namespace cudiag {

// One code, of CUresult and cudaError_t together: they share their numbers.
struct CudaError {
    int code = 0;
    std::string driver;                 // "CUDA_ERROR_NO_DEVICE"; "" if the driver has no such code
    std::string runtime;                // "cudaErrorNoDevice"; "" likewise
    std::string driver_in, runtime_in;  // first release looked at that has it; "": all have it
    std::string text;                   // cudaGetErrorString's words; "" if it has none
    std::string meaning;                // one plain sentence
    bool sticky = false;                // the process must end to use CUDA again
    // What calls get that use a context after it was destroyed ("end"), after the primary one was
    // reset ("reset"), or after that from cudart alone ("reset by cudart"); "": none of these.
    std::string of_gone_context;
    bool probe = false;  // programs ask for it on purpose and go on
    std::string source;
};

const CudaError* cuda_error(int code);
const CudaError* cuda_error_named(std::string_view name);  // of either API
// By the words that a message begins with: "no CUDA-capable device is detected ...".
const CudaError* cuda_error_saying(std::string_view text);
std::vector<const CudaError*> all_cuda_errors();

// The oldest driver with which programs of a CUDA major run.
struct DriverNeed {
    std::string cuda;     // "12.x"
    std::string minimum;  // "525.60.13"
    bool checked = false;
    std::string source;
};

const DriverNeed* driver_need(std::string_view cuda_release);  // "12.8" -> that of 12.x

// A wheel that has a runtime inside of its own files.
struct RuntimePackage {
    std::string package;    // "cupy-cuda12x"
    std::string directory;  // part of the paths of its files: "/cupy_backends/"
    std::string cuda;       // "12.x"
};

const std::vector<RuntimePackage>& runtime_packages();

// The CUDA release that a driver brings: "550.54.14" -> "12.4"; "" for a branch that is not known.
std::string cuda_of_driver(std::string_view driver_release);

// "12.4" for 12040, as cuDriverGetVersion and cudaRuntimeGetVersion write it; "" for 0.
std::string cuda_release_of(unsigned long long number);

// The release in a file name ("libcuda.so.550.54.14") or in /proc/driver/nvidia/version; "" if
// there is none.
std::string driver_release_in(std::string_view text);

// A text in which programs tell that CUDA failed; the keys of its groups: "code", "name", "text",
// "driver_version", "call".
struct CudaText : FoundText {
    int code = 0;  // of `values`, by number, name or words; 0 if they tell none
};

// All that a message tells, in the order of the text.
std::vector<CudaText> cuda_texts_of(std::string_view message);
std::vector<const TextPattern*> all_cuda_texts();

// The first code that a message tells; 0 if it tells none.
int cuda_code_told_by(std::string_view message);

// Is it a code with which CUDA does not start, or one of a GPU that runs?
bool is_about_the_start(int code);

// What is told of a code with which a driver refuses to start.
struct UnavailableRemedy {
    std::vector<std::string> when;  // states that must hold; "!x": must not
    std::string text, command;      // with {words} to fill in
};

struct UnavailableCode {
    int code = 0;
    std::string title;
    std::vector<std::string> calls;      // only if one of these gave it; empty: whoever did
    std::vector<std::string> not_calls;  // from these it has other causes
    std::vector<UnavailableRemedy> remedies;
    std::string limits;
    bool likely = false;  // the code alone does not tell the cause
    std::string source;
};

const UnavailableCode* unavailable_code(int code);
std::vector<const UnavailableCode*> all_unavailable_codes();

// As knowledge_problems(), of these four files.
std::vector<std::string> cuda_problems();

}  // namespace cudiag
