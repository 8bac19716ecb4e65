// What the shells' completion asks for (packaging/completions): the candidates for the last of the
// words that stand on a command line. They come from the command's own options, so that none is
// forgotten.
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "cli/commands.h"
#include "cli/runs.h"
#include "diagnose/embedded.h"

namespace cudiag {
namespace {

// Lines that the shells fill in themselves.
constexpr std::string_view kFiles = ":files";
constexpr std::string_view kCommands = ":commands";

bool starts_with(std::string_view text, std::string_view start) {
    return text.substr(0, start.size()) == start;
}

void offer(std::string_view candidate, std::string_view meaning, std::string_view begun) {
    if (starts_with(candidate, begun)) {
        fmt::print("{}\t{}\n", candidate, meaning);
    }
}

void offer_findings(std::string_view begun) {
    for (const auto& [slug, meaning] : explained_findings()) {
        offer(slug, meaning, begun);
    }
}

void offer_runs(std::string_view begun) {
    for (const std::string& run : all_runs()) {
        offer(std::filesystem::path{run}.filename().string(), run, begun);
    }
}

void offer_values(const CLI::Option& option, std::string_view begun) {
    const std::string& name = option.get_single_name();
    if (name == "slug") {
        offer_findings(begun);
    } else if (name == "command" || name == "python") {
        fmt::print("{}\n", kCommands);
    } else {
        if (name == "run") {
            offer_runs(begun);
        }
        fmt::print("{}\n", kFiles);
    }
}

void offer_options(const CLI::App& app, std::string_view begun) {
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) {
            offer("--" + name, option->get_description(), begun);
        }
    }
}

bool is_visible(const CLI::App* app) {
    return !app->get_group().empty();
}

const CLI::App* subcommand_of(const CLI::App& app, const std::string& name) {
    const auto named = app.get_subcommands(
        [&](const CLI::App* sub) { return is_visible(sub) && sub->check_name(name); });
    return named.empty() ? nullptr : named.front();
}

const CLI::Option* option_of(const CLI::App& app, const std::string& word) {
    const auto named =
        app.get_options([&](const CLI::Option* option) { return option->check_name(word); });
    return named.empty() ? nullptr : named.front();
}

bool takes_value(const CLI::Option* option) {
    return option != nullptr && option->get_items_expected_max() > 0;
}

// Where on the command line the last word stands.
struct Place {
    const CLI::App* app = nullptr;
    const CLI::Option* value_of = nullptr;  // the option before it that wants a value
    std::size_t positionals = 0;            // before it
    bool only_positionals = false;          // behind --
};

void pass(Place& place, const std::string& word) {
    if (place.value_of != nullptr) {
        // bash gives "=" as a word of its own.
        place.value_of = word == "=" ? place.value_of : nullptr;
    } else if (!place.only_positionals && word == "--") {
        place.only_positionals = true;
    } else if (!place.only_positionals && starts_with(word, "-")) {
        const CLI::Option* option = option_of(*place.app, word);
        place.value_of = takes_value(option) ? option : nullptr;
    } else if (const CLI::App* sub = subcommand_of(*place.app, word); sub != nullptr) {
        place = {.app = sub};
    } else {
        ++place.positionals;
    }
}

void offer_positional(const Place& place, std::string_view begun) {
    const auto positionals =
        place.app->get_options([](const CLI::Option* option) { return option->get_positional(); });
    if (positionals.empty()) {
        return;
    }
    if (place.positionals == 0) {
        offer_values(*positionals.front(), begun);
    } else if (positionals.front()->get_items_expected_max() > 1) {
        fmt::print("{}\n", kFiles);  // arguments of the command that stands before
    }
}

}  // namespace

int complete_command(const CLI::App& app, const std::vector<std::string>& words) {
    Place place{.app = &app};
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        pass(place, words[i]);
    }
    const std::string_view last = words.empty() ? std::string_view{} : words.back();
    const std::string_view begun = last == "=" ? std::string_view{} : last;
    if (place.value_of != nullptr) {
        offer_values(*place.value_of, begun);
    } else if (starts_with(begun, "-") && !place.only_positionals) {
        offer_options(*place.app, begun);
    } else {
        for (const CLI::App* sub : place.app->get_subcommands(is_visible)) {
            offer(sub->get_name(), sub->get_description(), begun);
        }
        offer_positional(place, begun);
    }
    return kNothingFound;
}

}  // namespace cudiag
