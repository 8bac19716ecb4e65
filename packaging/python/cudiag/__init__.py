"""cudiag explains why CUDA programs fail: `python -m cudiag`, or the command `cudiag` that was installed with this package.

Importing it does nothing. What preloads the library into a process is LD_PRELOAD alone:

    LD_PRELOAD=$(cudiag lib) python finetune.py
"""


def command():
    """Path of the command that was installed with this package. FileNotFoundError if it is not there."""
    from importlib import metadata

    recorded = [file.locate() for file in metadata.files("cudiag") or [] if file.parts[-2:] == ("bin", "cudiag")]
    for path in recorded:
        if path.exists():
            return str(path.resolve())
    raise FileNotFoundError("the command is not where pip recorded it (pip install --target loses it: install into an "
                            f"environment): {', '.join(map(str, recorded)) or 'no record'}")
