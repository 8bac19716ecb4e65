"""NCCL's own functions without a GPU: those that it does not export are called by their place in the file."""

import shutil
import subprocess

from machine import CannotRun

_CALLS = """
import ctypes, os, socket, struct
library = "{library}"
try: ctypes.CDLL("libnvToolsExt.so.0")                  # asked for and done without, as programs do
except OSError: pass
nccl = ctypes.CDLL(library)
places = {places}
base = ctypes.cast(nccl.ncclGetVersion, ctypes.c_void_p).value - places["ncclGetVersion"]
nccl.ncclGetLastError.restype = nccl.ncclGetErrorString.restype = ctypes.c_char_p

def call(name, *arguments):
    error = ctypes.CFUNCTYPE(ctypes.c_int, *map(type, arguments))(base + places[name])(*arguments)
    if error:
        raise RuntimeError(f"NCCL error: {{nccl.ncclGetErrorString(error).decode()}}\\nLast error:\\n"
                           f"{{nccl.ncclGetLastError(None).decode()}}")

def room(bytes): return ctypes.cast(ctypes.create_string_buffer(bytes), ctypes.c_void_p)
"""

_FUNCTIONS = {"ncclGetVersion": "ncclGetVersion", "ncclShmOpen": "_Z11ncclShmOpenPcmmPPvS1_iS1_",
              "ncclSocketInit": "_Z14ncclSocketInitP10ncclSocketPK17ncclSocketAddressm14ncclSocketTypePVjii",
              "ncclSocketConnect": "_Z17ncclSocketConnectP10ncclSocket"}


def nccl_calls(library):
    """The beginning of a Python program that calls functions of NCCL 2.29.7 and raises with NCCL's words, as torch does."""
    if shutil.which("nm") is None:
        raise CannotRun("no nm (binutils)")
    table = subprocess.run(["nm", library], capture_output=True, text=True).stdout
    symbols = {line.split()[2]: int(line.split()[0], 16) for line in table.splitlines() if len(line.split()) == 3}
    if not set(_FUNCTIONS.values()) <= set(symbols):
        raise CannotRun("this libnccl has no table of its own functions")
    return _CALLS.format(library=library, places={name: symbols[symbol] for name, symbol in _FUNCTIONS.items()})
