"""`python -m cudiag …`: the command, in the place of this process. `doctor` then looks at this Python unless told otherwise."""
import os
import sys

from cudiag import command


def main():
    words = sys.argv[1:]
    if words[:1] == ["doctor"] and not any(word.split("=")[0] == "--python" for word in words):
        words[1:1] = ["--python", sys.executable]
    try:
        path = command()
    except FileNotFoundError as error:
        print(f"cudiag: {error}", file=sys.stderr)
        return 3
    os.execv(path, [path, *words])


if __name__ == "__main__":
    sys.exit(main())
