"""bash, zsh and fish complete commands, options, findings and runs, as the installed files tell them to; files where files are wanted."""
import pty
import select
import time

from packages import *

need("bash", "zsh", "fish")
bed = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, bed, ignore_errors=True)
subprocess.run(["cmake", "--install", BIN.parent, "--prefix", bed / "p"], check=True, capture_output=True)
share, runs, here = bed / "p/share", bed / "runs", bed / "here"
(here / "some_dir").mkdir(parents=True)
for name in ("5f0c22d1-1234567-4711", "nightly"):
    (runs / name).mkdir(parents=True)
    (runs / name / "run.json").write_text("{}")
environment = {"PATH": f"{bed}/p/bin:/usr/bin:/bin", "HOME": str(bed), "CUDIAG_DIR": str(runs), "LC_ALL": "C.UTF-8", "TERM": "dumb",
               "XDG_DATA_DIRS": str(share)}


def output(*command):
    done = subprocess.run([str(c) for c in command], env=environment, cwd=here, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


def by_bash(line):
    script = f"""source {share}/bash-completion/completions/cudiag
COMP_WORDS=({line.removesuffix(' ')}{' ""' if line.endswith(' ') else ''}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
compopt() {{ :; }}; _cudiag; printf '%s\\n' "${{COMPREPLY[@]}}" """
    return set(output("bash", "--norc", "-c", script).split("\n")) - {""}


def by_fish(line):
    return {offered.split("\t")[0] for offered in output("fish", "-c", f"source {share}/fish/vendor_completions.d/cudiag.fish; "
            f"complete -C '{line}'").splitlines()}


def by_zsh(line):
    """What a real zsh shows when the Tab key is pressed."""
    setup = f"""fpath=({share}/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -d {bed}/dump
PS1='%% '; LISTMAX=10000; zstyle ':completion:*' list-prompt ''; setopt no_always_last_prompt\nunsetopt menu_complete auto_menu beep
"""
    (bed / ".zshrc").write_text(setup)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(here)
        os.execve(shutil.which("zsh"), ["zsh", "-i"], environment | {"COLUMNS": "200", "LINES": "200"})
    seen = ""

    def read(until, seconds=20):
        nonlocal seen
        end, seen = time.monotonic() + seconds, ""
        while until not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                seen += os.read(terminal, 65536).decode(errors="replace")

    read("% ")
    os.write(terminal, line.encode() + b"\x04")   # ^D lists, and completes nothing
    read("\x00", 3)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return set(re.split(r"\s+", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen)))


def help_of(*command):
    return subprocess.run([BIN / "cudiag", *command, "--help"], capture_output=True, text=True, check=True).stdout


commands = set(re.findall(r"^  (\w[\w-]*) ", help_of().split("Subcommands:")[1], re.M))
options = {command: set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", help_of(command), re.M)) for command in commands}
slugs = {line.split(":")[0] for line in output("cudiag", "explain").splitlines()}
assert len(commands) >= 6 and "--fix" in options["doctor"] and len(slugs) > 30

EXACTLY = [("cudiag ", commands), ("cudiag re", {"report"}), ("cudiag explain ", slugs),
           ("cudiag explain nccl-r", {slug for slug in slugs if slug.startswith("nccl-r")}),
           *((f"cudiag {command} --", options[command]) for command in sorted(commands)),
           ("cudiag report --json 5f", {"5f0c22d1-1234567-4711"}), ("cudiag lib ", set())]
AMONG = [("cudiag report ", {"5f0c22d1-1234567-4711", "nightly"}), ("cudiag libs so", {"some_dir"}), ("cudiag run -- bas", {"bash"}),
         ("cudiag run -- ls so", {"some_dir"}), ("cudiag doctor --python bas", {"bash"})]
for shell in by_bash, by_fish:
    for line, wanted in EXACTLY:
        assert shell(line) == wanted, (shell.__name__, line, shell(line) ^ wanted)
    for line, wanted in AMONG:
        offered = {word.rstrip("/") for word in shell(line)}
        assert wanted <= offered, (shell.__name__, line, wanted - offered)
for line, wanted in (("cudiag ", commands), ("cudiag doctor --", options["doctor"]), ("cudiag explain ", slugs),
                     ("cudiag report ", {"5f0c22d1-1234567-4711", "nightly"})):
    assert wanted <= by_zsh(line), (line, wanted - by_zsh(line))
