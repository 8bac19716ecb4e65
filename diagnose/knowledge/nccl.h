// What is known of the words in which NCCL fails, and of what follows from them: data from
// knowledge/nccl_texts.json.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/knowledge/text_pattern.h"

namespace cudiag {

struct NcclRemedy {
    std::vector<std::string> when;  // states that must hold; "!x": must not
    std::string text, command;      // with {words} to fill in
};

// Why NCCL failed, as far as its words tell.
struct NcclCause {
    std::string name;     // "duplicate-gpu"; a result of nccl.h where the words tell no more
    std::string slug;     // of the finding
    std::string title;    // with {words}
    std::string meaning;  // what the words say
    std::vector<NcclRemedy> remedies;
    std::string limits;
    bool likely = false;  // the words do not settle it
    std::string source;
};

// All that a message tells, in its order. Keys: result, last_error, version, cause, and what each
// cause's words hold.
std::vector<FoundText> nccl_texts_of(std::string_view message);
std::vector<const TextPattern*> all_nccl_texts();

const NcclCause* nccl_cause(std::string_view name);
std::vector<const NcclCause*> all_nccl_causes();

// As knowledge_problems(), of this file.
std::vector<std::string> nccl_problems();

// "ncclSystemError" for 2; "" for a number that nccl.h does not have.
std::string nccl_result_name(int code);

struct NcclTable {
    PatternTable texts;
    std::map<int, std::string> results;
    std::string results_source;
    std::map<std::string, NcclCause, std::less<>> causes;
};

// Throws KnowledgeError, also where a text names a cause that is not there.
NcclTable parse_nccl_texts(std::string_view json);

}  // namespace cudiag
