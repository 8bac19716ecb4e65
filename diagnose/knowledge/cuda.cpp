#include "diagnose/knowledge/cuda.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "diagnose/knowledge/cuda_tables.h"
#include "diagnose/knowledge/data_object.h"
#include "diagnose/knowledge/loaded.h"
#include "diagnose/knowledge/release_name.h"

namespace cudiag {
namespace {

const Loaded<CudaErrorTable>& errors() {
    static const auto loaded = load_table("cuda_errors.json", parse_cuda_errors);
    return loaded;
}

const Loaded<DriverTable>& drivers() {
    static const auto loaded = load_table("drivers.json", parse_drivers);
    return loaded;
}

const Loaded<PatternTable>& texts() {
    static const auto loaded = load_table("cuda_texts.json", parse_cuda_texts);
    return loaded;
}

const Loaded<UnavailableTable>& unavailable() {
    static const auto loaded = load_table("cuda_unavailable.json", parse_unavailable);
    return loaded;
}

std::optional<int> number_in(std::string_view text) {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return number;
}

int code_in(DataObject& entry) {
    const auto code = number_in(entry.text("code"));
    if (!code) {
        entry.fail("'code' is not a number");
    }
    return *code;
}

CudaError error_of(DataObject& entry) {
    CudaError error;
    error.code = code_in(entry);
    error.driver = entry.optional_text("driver");
    error.driver_in = entry.optional_text("driver_in");
    error.runtime = entry.optional_text("runtime");
    error.runtime_in = entry.optional_text("runtime_in");
    error.text = entry.optional_text("text");
    error.meaning = entry.text("meaning");
    error.sticky = entry.flag("sticky");
    error.of_gone_context = entry.optional_text("of_gone_context");
    constexpr const char* kEnds[] = {"", "end", "reset", "reset by cudart"};
    if (std::find(std::begin(kEnds), std::end(kEnds), error.of_gone_context) == std::end(kEnds)) {
        entry.fail("of_gone_context is end, reset or reset by cudart");
    }
    error.probe = entry.flag("probe");
    error.source = entry.text("source");
    entry.nothing_else();
    if (error.driver.empty() && error.runtime.empty()) {
        entry.fail("has no name");
    }
    return error;
}

std::string value_of(const CudaText& text, const char* key) {
    const auto found = text.values.find(key);
    return found == text.values.end() ? std::string{} : found->second;
}

// The code that the values tell: by its number, by a name, or by the runtime's words.
int code_of(const CudaText& text) {
    if (const auto number = number_in(value_of(text, "code"))) {
        return *number;
    }
    const CudaError* error = nullptr;
    if (const std::string name = value_of(text, "name"); !name.empty()) {
        error = cuda_error_named(name);
    } else if (const std::string words = value_of(text, "text"); !words.empty()) {
        error = cuda_error_saying(words);
    }
    return error == nullptr ? 0 : error->code;
}

template <typename Value>
std::vector<const Value*> pointers(const std::map<int, Value>& table) {
    std::vector<const Value*> result;
    result.reserve(table.size());
    for (const auto& [code, value] : table) {
        result.push_back(&value);
    }
    return result;
}

}  // namespace

const CudaError* cuda_error(int code) {
    const auto& table = errors().table.by_code;
    const auto found = table.find(code);
    return found == table.end() ? nullptr : &found->second;
}

const CudaError* cuda_error_named(std::string_view name) {
    const auto& table = errors().table.by_name;
    const auto found = table.find(name);
    return found == table.end() ? nullptr : cuda_error(found->second);
}

const CudaError* cuda_error_saying(std::string_view text) {
    const CudaError* longest = nullptr;  // one text may begin another
    for (const auto& [code, error] : errors().table.by_code) {
        if (!error.text.empty() && text.substr(0, error.text.size()) == error.text &&
            (longest == nullptr || longest->text.size() < error.text.size())) {
            longest = &error;
        }
    }
    return longest;
}

std::vector<const CudaError*> all_cuda_errors() {
    return pointers(errors().table.by_code);
}

const DriverNeed* driver_need(std::string_view cuda_release) {
    const int major = cuda_major_of(cuda_release);
    for (const DriverNeed& need : drivers().table.needs) {
        if (major != 0 && cuda_major_of(need.cuda) == major) {
            return &need;
        }
    }
    return nullptr;
}

const std::vector<RuntimePackage>& runtime_packages() {
    return drivers().table.packages;
}

std::string cuda_of_driver(std::string_view driver_release) {
    const auto& table = drivers().table.cuda_of_branch;
    const auto found = table.find(driver_release.substr(0, driver_release.find('.')));
    return found == table.end() ? std::string{} : found->second;
}

std::string cuda_release_of(unsigned long long number) {
    if (number < 1000) {
        return {};
    }
    return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string driver_release_in(std::string_view text) {
    static const std::regex release{
        R"((?:^|[^0-9.]|\.so\.)(\d{3}\.\d{1,3}(?:\.\d{1,3})?)(?![0-9]))"};
    std::match_results<std::string_view::const_iterator> match;
    const std::string_view head = text.substr(0, kSearchedBytes);
    return std::regex_search(head.begin(), head.end(), match, release) ? match.str(1)
                                                                       : std::string{};
}

std::vector<CudaText> cuda_texts_of(std::string_view message) {
    std::vector<CudaText> found;
    for (FoundText& text : find_texts(texts().table, message)) {
        found.push_back({std::move(text), 0});
        found.back().code = code_of(found.back());
    }
    return found;
}

int cuda_code_told_by(std::string_view message) {
    for (const CudaText& text : cuda_texts_of(message)) {
        if (text.code != 0) {
            return text.code;
        }
    }
    return 0;
}

bool is_about_the_start(int code) {
    constexpr int kInsufficientDriver = 35;
    constexpr int kCompatNotSupported = 804;
    return code == kInsufficientDriver || code == kCompatNotSupported ||
           unavailable_code(code) != nullptr;
}

std::vector<const TextPattern*> all_cuda_texts() {
    std::vector<const TextPattern*> result;
    result.reserve(texts().table.patterns.size());
    for (const TextPattern& pattern : texts().table.patterns) {
        result.push_back(&pattern);
    }
    return result;
}

const UnavailableCode* unavailable_code(int code) {
    const auto& table = unavailable().table.by_code;
    const auto found = table.find(code);
    return found == table.end() ? nullptr : &found->second;
}

std::vector<const UnavailableCode*> all_unavailable_codes() {
    return pointers(unavailable().table.by_code);
}

std::vector<std::string> cuda_problems() {
    std::vector<std::string> problems;
    for (const std::string& problem :
         {errors().problem, drivers().problem, texts().problem, unavailable().problem}) {
        if (!problem.empty()) {
            problems.push_back(problem);
        }
    }
    return problems;
}

CudaErrorTable parse_cuda_errors(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "cuda_errors.json", keep);
    static_cast<void>(file.text("source"));
    CudaErrorTable table;
    for (DataObject& entry : file.objects("errors")) {
        CudaError error = error_of(entry);
        for (const std::string& name : {error.driver, error.runtime}) {
            if (!name.empty()) {
                put_once(table.by_name, entry, name, error.code);
            }
        }
        const int code = error.code;
        put_once(table.by_code, entry, code, std::move(error), std::to_string(code));
    }
    file.nothing_else();
    return table;
}

DriverTable parse_drivers(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "drivers.json", keep);
    DriverTable table;
    for (DataObject& entry : file.objects("runtimes")) {
        DriverNeed need;
        need.cuda = entry.text("cuda");
        need.minimum = entry.text("minimum");
        need.checked = entry.flag("checked");
        need.source = entry.text("source");
        entry.nothing_else();
        if (cuda_major_of(need.cuda) == 0 || driver_release_in(need.minimum) != need.minimum) {
            entry.fail("'cuda' or 'minimum' is no release");
        }
        table.needs.push_back(std::move(need));
    }
    for (DataObject& entry : file.optional_objects("packages")) {
        table.packages.push_back({.package = entry.text("package"),
                                  .directory = entry.text("directory"),
                                  .cuda = entry.text("cuda")});
        static_cast<void>(entry.text("source"));
        entry.nothing_else();
    }
    for (DataObject& entry : file.objects("branches")) {
        const std::string branch = entry.text("branch");
        const std::string cuda = entry.text("cuda");
        static_cast<void>(entry.flag("checked"));
        static_cast<void>(entry.text("source"));
        entry.nothing_else();
        put_once(table.cuda_of_branch, entry, branch, cuda);
    }
    file.nothing_else();
    return table;
}

PatternTable parse_cuda_texts(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "cuda_texts.json", keep);
    PatternTable table = read_pattern_table(file);
    file.nothing_else();
    return table;
}

UnavailableTable parse_unavailable(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "cuda_unavailable.json", keep);
    UnavailableTable table;
    for (DataObject& entry : file.objects("codes")) {
        UnavailableCode code;
        code.code = code_in(entry);
        code.title = entry.text("title");
        code.calls = entry.texts("calls");
        code.not_calls = entry.texts("not_calls");
        for (DataObject& remedy : entry.optional_objects("remedies")) {
            code.remedies.push_back({.when = remedy.texts("when"),
                                     .text = remedy.text("text"),
                                     .command = remedy.optional_text("command")});
            remedy.nothing_else();
        }
        code.limits = entry.text("limits");
        code.likely = entry.flag("likely");
        code.source = entry.text("source");
        entry.nothing_else();
        const int number = code.code;
        put_once(table.by_code, entry, number, std::move(code), std::to_string(number));
    }
    file.nothing_else();
    return table;
}

}  // namespace cudiag
