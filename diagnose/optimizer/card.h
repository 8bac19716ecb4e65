// What a card was measured to do by `cudiag bench adam` (docs/benchmarks.md, "The card's file"),
// and what follows for an AdamW on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cudiag {

// First quartile, median and third quartile of repeated measurements.
struct Spread {
    double low = 0;
    double median = 0;
    double high = 0;
};

// One size of one implementation.
struct AdamWTime {
    std::string implementation;  // "cudiag": our kernel, the card's limit; "fused": as torch's
    std::string dtype;           // of all tensors: "float32"; "bfloat16+master": master and state
                                 // in float32
    bool large_tables = false;   // "fused" only: launches of 2240 chunks, not 320
    bool double_math = false;    // "fused" only: computes in double
    std::uint64_t elements = 0;
    std::uint64_t tensors = 0;
    std::uint64_t launches = 0;
    std::uint64_t bytes = 0;  // read and written by a step
    Spread milliseconds;      // of the device, first kernel's begin to last kernel's end
};

struct Card {
    std::string uuid;      // as nvidia-smi writes it
    std::string name;      // "NVIDIA H200"
    std::string driver;    // release, "580.159.04"; "" if it was not known
    std::string made;      // when, ISO 8601 UTC
    Spread copy_gb_per_s;  // read and written, 1e9 bytes
    std::vector<AdamWTime> adamw;
    std::vector<AdamWTime> checks;  // measured at sizes between, to see what a prediction is worth
    double fused_error = 0;         // relative: of "fused" against torch itself
};

// From the text of such a file; nothing if it is another's, damaged or of an unknown schema.
std::optional<Card> card_from_json(std::string_view text);

// The card of this uuid in the first directory that has it; with an empty uuid the newest of this
// name and driver. Nothing if there is none. Reads files; unreadable ones are passed over.
std::optional<Card> find_card(const std::vector<std::string>& directories, const std::string& uuid,
                              const std::string& name, const std::string& driver);

// Parameters of one size that follow each other in an optimizer.
struct TensorRun {
    std::uint64_t elements = 0;  // of each
    std::uint64_t tensors = 0;
};

// A step over parameters of one dtype.
struct WantedStep {
    std::uint64_t elements = 0;
    std::uint64_t tensors = 0;
    std::string dtype = "float32";
    bool large_tables = false;      // torch launches 2240 chunks at once, not 320
    bool double_math = false;       // torch is 2.10 or older
    std::vector<TensorRun> runs{};  // in order; none: they are taken as equal
};

struct Prediction {
    double milliseconds = 0;  // of the device; nothing of the host's time is in it
    double error = 0;         // relative: 0.05 says that 5 % more or less are to be expected
};

// Device time of torch's fused AdamW, from what its launches were measured to take. Nothing for
// fewer than 2e7 elements, for a dtype that was not measured (float16 costs what bfloat16 does), or
// if more than a twentieth of the elements are in tensors whose number is no multiple of 4. Its
// error is fused_error and the largest one at the sizes that check.
std::optional<Prediction> predict_fused(const Card& card, const WantedStep& step);

// Milliseconds of our own kernel: what this card can do. Nothing as above.
std::optional<double> predict_limit(const Card& card, const WantedStep& step);

}  // namespace cudiag
