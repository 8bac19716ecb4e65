#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <exception>

#include "cli/commands.h"
#include "diagnose/say.h"
#include "present/language.h"
#include "present/spoken.h"

namespace cudiag {
namespace {

int parse_and_dispatch(int argc, char** argv) {
    CLI::App app{spoken(
        say("cudiag explains why CUDA programs fail: what happened, on what evidence, and which "
            "command mends it."))};
    app.set_version_flag("--version", "cudiag " CUDIAG_VERSION);
    app.require_subcommand(0, 1);
    app.footer(spoken(
        say("Preload it:  LD_PRELOAD=$(cudiag lib) python finetune.py\n"
            "Exit status: 0 nothing found, 1 findings of severity error, 2 bad usage, 3 could not "
            "run.")));

    RunOptions run_options;
    CLI::App* run = app.add_subcommand(
        "run", spoken(say("Run a program under the shim; exits with the program's status")));
    run->add_option("command", run_options.command,
                    spoken(say("The program and its arguments (after --)")))
        ->required();
    run->positionals_at_end();

    ReportOptions report_options;
    bool last = false;
    CLI::App* report = app.add_subcommand(
        "report", spoken(say("Tell the story of a run: the newest, or the one named")));
    report->add_option("run", report_options.run, spoken(say("Run directory, or its name")));
    report->add_flag("--last", last, spoken(say("The newest run (the default)")));
    report->add_flag("--json", report_options.json, spoken(say("JSON on stdout")));
    report->add_flag("--list", report_options.list, spoken(say("List the runs, the newest first")));
    ProfileFiles& files = report_options.profile_files;
    report->add_option("--html", files.html, spoken(say("Write the run's profile as a page")));
    report->add_option("--perfetto", files.perfetto,
                       spoken(say("Write the profile as a trace for ui.perfetto.dev")));
    report->add_option(
        "--tensorboard", files.tensorboard,
        spoken(say("Write the profile as TensorBoard's scalars into this directory")));

    std::string slug;
    CLI::App* explain = app.add_subcommand(
        "explain", spoken(say("The long text of a finding; without SLUG, the list")));
    explain->add_option("slug", slug, spoken(say("As in the report: loader-missing-library")));

    LibsOptions libs_options;
    CLI::App* libs = app.add_subcommand(
        "libs", spoken(say("What a program or library needs, and where ld.so finds it")));
    libs->add_option("target", libs_options.target,
                     spoken(say("An ELF file, or the pid of a running process")))
        ->required();
    libs->add_flag("--json", libs_options.json, spoken(say("JSON on stdout")));

    DoctorOptions doctor_options;
    CLI::App* doctor = app.add_subcommand(
        "doctor",
        spoken(say("Can this Python import torch, build CUDA extensions, load and launch them?")));
    doctor->add_option(
        "--python", doctor_options.python,
        spoken(say("The Python to look at (default: VIRTUAL_ENV, CONDA_PREFIX, then PATH)")));
    doctor->add_flag("--json", doctor_options.json, spoken(say("JSON on stdout")));
    doctor->add_flag("--build", doctor_options.build,
                     spoken(say("Really build an extension of one kernel")));
    doctor->add_flag("--launch", doctor_options.launch, spoken(say("Really launch a kernel")));
    doctor->add_flag("--fix", doctor_options.fix, spoken(say("Mend what is red; asks first")));
    doctor->add_flag("--dry-run", doctor_options.dry_run,
                     spoken(say("With --fix: only print the script")));
    doctor->add_flag("--yes", doctor_options.yes, spoken(say("With --fix: do not ask")));

    CLI::App* lib = app.add_subcommand("lib", spoken(say("Print the path of libcudiag.so")));

    BenchOptions bench_options;
    CLI::App* bench = app.add_subcommand("bench", spoken(say("What this card can do")));
    bench->require_subcommand(1);
    CLI::App* adam = bench->add_subcommand(
        "adam",
        spoken(say("AdamW against the speed of a copy; kept, for profiles to compare with")));
    adam->add_option("--elements", bench_options.elements,
                     spoken(say("One size instead of all; not kept")))
        ->check(CLI::PositiveNumber);
    adam->add_option("--tensors", bench_options.tensors,
                     spoken(say("Of that size, in so many tensors")))
        ->check(CLI::PositiveNumber);
    adam->add_option("--dtype", bench_options.dtype,
                     spoken(say("Of parameters, gradients and state")))
        ->check(
            CLI::IsMember({"float32", "bfloat16", "float16", "bfloat16+master", "float16+master"}));
    adam->add_option("--device", bench_options.device, spoken(say("Which GPU, as CUDA counts")))
        ->check(CLI::NonNegativeNumber);
    adam->add_flag("--json", bench_options.json, spoken(say("JSON on stdout")));

    InPlaceOptions in_place_options;
    CLI::App* in_place = app.add_subcommand("in-place", "Started by the shim")->group("");
    in_place->add_option("--run", in_place_options.run)->required();
    in_place->add_option("--pid", in_place_options.pid)->required();
    in_place->add_option("--when", in_place_options.when)
        ->check(CLI::IsMember({"exit", "early", "lock", "build"}));

    std::vector<std::string> words;
    CLI::App* complete = app.add_subcommand("complete", "Started by a shell")->group("");
    complete->add_option("words", words);

    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::ParseError& error) {
        complain(say("{} (see cudiag --help)", error.what()));
        return kBadUsage;
    }
    if (app.get_subcommands().empty()) {
        complain(
            say("say what to do: run, report, doctor, explain, libs, bench or lib (see cudiag "
                "--help)"));
        return kBadUsage;
    }
    if (*run) {
        return run_command(run_options);
    }
    if (!*in_place && !*lib && !language_is_known()) {
        complain(say("CUDIAG_LANG names a language that cudiag does not speak: en or zh"));
        return kBadUsage;
    }
    if (*report) {
        if (last && !report_options.run.empty()) {
            complain(say("report takes a run or --last, not both"));
            return kBadUsage;
        }
        return report_command(report_options);
    }
    if (*explain) {
        return explain_command(slug);
    }
    if (*libs) {
        return libs_command(libs_options);
    }
    if (*doctor) {
        return doctor_command(doctor_options);
    }
    if (*bench) {
        return bench_adam_command(bench_options);
    }
    if (*complete) {
        return complete_command(app, words);
    }
    return *lib ? lib_command() : in_place_command(in_place_options);
}

}  // namespace

void complain(const std::string& what) {
    fmt::print(stderr, "cudiag: {}\n", spoken(what));
}

}  // namespace cudiag

int main(int argc, char** argv) {
    // A reader that goes away (`cudiag report | head`) is no reason to die by a signal.
    (void)std::signal(SIGPIPE, SIG_IGN);
    try {
        return cudiag::parse_and_dispatch(argc, argv);
    } catch (const std::exception& error) {
        (void)std::fprintf(stderr, "cudiag: %s\n", cudiag::spoken(error.what()).c_str());
    } catch (...) {
        (void)std::fputs("cudiag: failed in a way that it does not know\n", stderr);
    }
    return cudiag::kCouldNotRun;
}
