"""Is what cudiag says in Chinese all Chinese? English that stands there must be somebody else's."""

import re

# Four words in a row, all small letters: no name, path, command or symbol looks so.
SENTENCE = re.compile(r"\b[a-z]+[,;:]? [a-z']+[,;:]? [a-z']+[,;:]? [a-z']+\b")
# Evidence that holds what others said, what ran, or the source of a figure.
OTHERS = {"error", "visible_error", "hidden_error", "last_error", "driver_log", "jit_log", "log", "output", "said", "argv", "started_by",
          "demangled", "symbol", "tracking", "result", "call", "minimum_from"}
# libc's own words for errno, which it has in English where no other locale is set.
LIBC = ["No such file or directory", "Not a directory", "Too many levels of symbolic links"]


def texts_of_others(value, key=""):
    if isinstance(value, dict):
        return [text for k, v in value.items() for text in texts_of_others(v, k)]
    if isinstance(value, list):
        told = [", ".join(value)] if key in OTHERS and all(isinstance(v, str) for v in value) else []       # as a line of the report has it
        return told + [text for v in value for text in texts_of_others(v, key)]
    return [value] if isinstance(value, str) and key in OTHERS else []


def one_line(text):
    return " ".join(text.split())


def english_in(told, report, *outputs):
    """English phrases of the text that are neither to be pasted nor somebody else's: of `cudiag report --json`, or these outputs."""
    others = one_line(" ".join([*outputs, *texts_of_others(report), *LIBC]))
    blocks, command = [], False
    for line in told.splitlines():
        command = line.lstrip().startswith("$ ")
        if command:
            blocks.append("")
        elif line.startswith(" " * 8) and blocks:
            blocks[-1] += " " + line.strip()      # a line that was wrapped
        else:
            blocks.append(line)
    found = [match[0] for block in blocks for match in SENTENCE.finditer(one_line(block))]
    return [phrase for phrase in found if phrase not in others]
