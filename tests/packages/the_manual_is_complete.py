"""Each command and option of `cudiag --help`, and each variable of the README, is in cudiag(1); and man has nothing to say of how it
is written."""
from packages import *

need("man", "groff")
page = BIN.parent / "packaging" / "cudiag.1"
shown = subprocess.run(["man", "--warnings", "-P", "cat", "-l", page], env=os.environ | {"MANWIDTH": "200", "LC_ALL": "C.UTF-8"},
                       capture_output=True, text=True)
assert shown.returncode == 0 and shown.stderr == "", shown.stderr
manual = shown.stdout


def help_of(*command):
    return subprocess.run([BIN / "cudiag", *command, "--help"], capture_output=True, text=True, check=True).stdout


def section(command):
    """What the manual says of a command: from its heading to the next."""
    headings = list(re.finditer(r"^ {7}cudiag (\w+)", manual[manual.index("\nCOMMANDS\n"):], re.M))
    for heading, after in zip(headings, [*headings[1:], None]):
        if heading[1] == command:
            text = manual[manual.index("\nCOMMANDS\n"):]
            return text[heading.start():after.start() if after else text.index("\nEXIT STATUS")]
    fail(f"cudiag(1) has no entry for the command {command}")


commands = re.findall(r"^  (\w[\w-]*) ", help_of().split("Subcommands:")[1], re.M)
assert {"run", "report", "doctor", "explain", "libs", "lib"} <= set(commands), commands
missing = [f"{command} {option}" for command in commands for option in re.findall(r"--[a-z][\w-]*", help_of(command).split("Options:")[-1])
           if option != "--help" and not re.search(rf"^ +{option}\b", section(command), re.M)]
assert not missing, f"cudiag(1) lacks: {', '.join(missing)}"
for option in re.findall(r"--[a-z][\w-]*", help_of().split("Subcommands:")[0]):
    assert option in manual, f"cudiag(1) lacks {option}"

settings = (TESTS.parent / "README.md").read_text().split("### Settings")[1].split("\n#")[0]
variables = set(re.findall(r"^\| `(CUDIAG\w*)", settings, re.M))
assert len(variables) >= 7, variables
environment = manual[manual.index("\nENVIRONMENT\n"):manual.index("\nFILES\n")]
lacks = [name for name in variables if not re.search(rf"^ +{name}\b", environment, re.M)]
assert not lacks, f"cudiag(1) lacks the variables {lacks}"
