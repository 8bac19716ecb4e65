#include "diagnose/knowledge/nccl.h"

#include "diagnose/knowledge/data_object.h"
#include "diagnose/knowledge/loaded.h"

namespace cudiag {
namespace {

const Loaded<NcclTable>& nccl() {
    static const auto loaded = load_table("nccl_texts.json", parse_nccl_texts);
    return loaded;
}

NcclCause cause_of(DataObject& entry) {
    NcclCause cause;
    cause.name = entry.text("name");
    cause.slug = entry.text("slug");
    cause.title = entry.text("title");
    cause.meaning = entry.text("meaning");
    for (DataObject& remedy : entry.optional_objects("remedies")) {
        cause.remedies.push_back({.when = remedy.texts("when"),
                                  .text = remedy.text("text"),
                                  .command = remedy.optional_text("command")});
        remedy.nothing_else();
    }
    cause.limits = entry.text("limits");
    cause.likely = entry.flag("likely");
    cause.source = entry.text("source");
    entry.nothing_else();
    return cause;
}

}  // namespace

std::vector<FoundText> nccl_texts_of(std::string_view message) {
    return find_texts(nccl().table.texts, message);
}

std::vector<const TextPattern*> all_nccl_texts() {
    std::vector<const TextPattern*> result;
    for (const TextPattern& pattern : nccl().table.texts.patterns) {
        result.push_back(&pattern);
    }
    return result;
}

const NcclCause* nccl_cause(std::string_view name) {
    const auto& causes = nccl().table.causes;
    const auto found = causes.find(name);
    return found == causes.end() ? nullptr : &found->second;
}

std::vector<const NcclCause*> all_nccl_causes() {
    std::vector<const NcclCause*> result;
    for (const auto& [name, cause] : nccl().table.causes) {
        result.push_back(&cause);
    }
    return result;
}

std::string nccl_result_name(int code) {
    const auto& results = nccl().table.results;
    const auto found = results.find(code);
    return found == results.end() ? std::string{} : found->second;
}

std::vector<std::string> nccl_problems() {
    return nccl().problem.empty() ? std::vector<std::string>{}
                                  : std::vector<std::string>{nccl().problem};
}

NcclTable parse_nccl_texts(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "nccl_texts.json", keep);
    NcclTable table;
    table.texts = read_pattern_table(file);
    for (DataObject& entry : file.objects("results")) {
        table.results[entry.code("code")] = entry.text("name");
        entry.nothing_else();
    }
    table.results_source = file.text("results_source");
    for (DataObject& entry : file.objects("causes")) {
        NcclCause cause = cause_of(entry);
        const std::string name = cause.name;
        put_once(table.causes, entry, name, std::move(cause));
    }
    file.nothing_else();
    for (const TextPattern& pattern : table.texts.patterns) {
        for (const auto& [key, value] : pattern.values) {
            if (key == "cause" && table.causes.count(value) == 0) {
                throw KnowledgeError("nccl_texts.json: '" + pattern.name + "' names the cause '" +
                                     value + "', which is not there");
            }
        }
    }
    return table;
}

}  // namespace cudiag
