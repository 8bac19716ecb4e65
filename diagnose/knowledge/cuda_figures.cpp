#include "diagnose/knowledge/cuda_figures.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "diagnose/knowledge/cuda_figure_tables.h"
#include "diagnose/knowledge/data_object.h"
#include "diagnose/knowledge/loaded.h"

namespace cudiag {
namespace {

// A log may be full of one pattern.
constexpr std::size_t kMostMatches = 64;

constexpr std::string_view kKeys[] = {
    "asked",     "free",        "total", "used_here",   "process",  "used_by_process",
    "allocated", "unallocated", "limit", "ptx_version", "ptx_known"};

const Loaded<FigureTable>& table() {
    static const auto loaded = load_table("cuda_figures.json", parse_cuda_figures);
    return loaded;
}

// Every match of one pattern; each is looked for in its line, from half a window before the literal
// text on.
void find_all(const TextPattern& pattern, const std::regex& regex, std::string_view message,
              std::vector<TextValues>& found) {
    std::size_t from = 0;
    for (std::size_t count = 0; count < kMostMatches; ++count) {
        const std::size_t at = message.find(pattern.contains, from);
        if (at == std::string_view::npos) {
            return;
        }
        const std::size_t before = message.rfind('\n', at);
        const std::size_t begin = std::max({from, before == std::string_view::npos ? 0 : before + 1,
                                            at > kSearchedBytes / 2 ? at - kSearchedBytes / 2 : 0});
        const std::string window{message.substr(begin, kSearchedBytes)};
        std::smatch match;
        from = at + pattern.contains.size();
        if (std::regex_search(window, match, regex)) {
            found.push_back(values_in(pattern, match));
            from = std::max(from, begin + static_cast<std::size_t>(match.position()) +
                                      static_cast<std::size_t>(match.length()));
        }
    }
}

}  // namespace

FigureTable parse_cuda_figures(std::string_view json) {
    nlohmann::json keep;
    DataObject file = data_file(json, "cuda_figures.json", keep);
    FigureTable read;
    for (DataObject& entry : file.objects("figures")) {
        TextPattern pattern;
        read_text_pattern(entry, pattern);
        entry.nothing_else();
        must_be_new(read.patterns, pattern, entry);
        for (const std::string& key : pattern.groups) {
            if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys)) {
                entry.fail("nobody reads '" + key + "'");
            }
        }
        std::regex regex = compiled(pattern, entry);
        std::vector<TextValues> own;
        find_all(pattern, regex, pattern.example, own);
        if (own.empty()) {
            entry.fail("'" + pattern.name + "' does not match its own example");
        }
        read.compiled.push_back(std::move(regex));
        read.patterns.push_back(std::move(pattern));
    }
    file.nothing_else();
    return read;
}

std::vector<TextValues> figures_of(std::string_view message) {
    const FigureTable& known = table().table;
    std::vector<TextValues> found;
    for (std::size_t i = 0; i < known.patterns.size(); ++i) {
        find_all(known.patterns[i], known.compiled[i], message, found);
    }
    return found;
}

std::vector<const TextPattern*> all_figure_patterns() {
    std::vector<const TextPattern*> result;
    for (const TextPattern& pattern : table().table.patterns) {
        result.push_back(&pattern);
    }
    return result;
}

std::optional<std::uint64_t> bytes_in(std::string_view amount) {
    struct Unit {
        std::string_view name;
        unsigned power;  // of two
    };

    constexpr Unit kUnits[] = {{"bytes", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
    constexpr std::string_view kDigits = "0123456789.,";
    const std::size_t end = std::min(amount.find_first_not_of(kDigits), amount.size());
    std::string digits{amount.substr(0, end)};
    digits.erase(std::remove(digits.begin(), digits.end(), ','), digits.end());
    std::string_view unit = amount.substr(end);
    unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
    const auto known = std::find_if(std::begin(kUnits), std::end(kUnits),
                                    [&](const Unit& each) { return each.name == unit; });
    constexpr std::size_t kMostDigits = 20;
    if (known == std::end(kUnits) || digits.empty() || digits.size() > kMostDigits ||
        std::count(digits.begin(), digits.end(), '.') > 1 || digits.front() == '.') {
        return std::nullopt;
    }
    if (known->power == 0 && digits.find('.') == std::string::npos) {
        std::uint64_t exact = 0;
        for (const char digit : digits) {
            if (__builtin_mul_overflow(exact, std::uint64_t{10}, &exact) ||
                __builtin_add_overflow(exact, static_cast<std::uint64_t>(digit - '0'), &exact)) {
                return std::nullopt;
            }
        }
        return exact;
    }
    const double bytes = std::ldexp(std::stod(digits), static_cast<int>(known->power));
    constexpr double kMost = 9.0e18;  // what fits into 63 bits
    return bytes < kMost ? std::optional<std::uint64_t>{static_cast<std::uint64_t>(bytes)}
                         : std::nullopt;
}

std::vector<std::string> cuda_figure_problems() {
    return table().problem.empty() ? std::vector<std::string>{}
                                   : std::vector<std::string>{table().problem};
}

}  // namespace cudiag
