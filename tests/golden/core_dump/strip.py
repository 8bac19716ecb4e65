"""Makes golden files of real core dumps of a GPU: strip.py DIRECTORY=INSTEAD NAME=CORE [NAME=CORE...]

Code of modules other than tests/gpu/faults.cu is the driver's own, and replaced by zeros; so are registers. The directory of the
sources gets another name of the same length.
"""
import gzip
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
RELOCATED_IMAGE, REGISTERS, UNIFORM_REGISTERS = 0x80000007, 0x80000005, 0x80000013
OURS = b"_Z20writes_out_of_boundsPfm"
DIRECTORY, INSTEAD = (name.encode() for name in sys.argv[1].split("=", 1))

for argument in sys.argv[2:]:
    name, _, path = argument.partition("=")
    core = bytearray(pathlib.Path(path).read_bytes())
    sections, = struct.unpack_from("<Q", core, 40)
    count, = struct.unpack_from("<H", core, 60)
    for i in range(count):
        kind, = struct.unpack_from("<I", core, sections + 64 * i + 4)
        offset, size = struct.unpack_from("<QQ", core, sections + 64 * i + 24)
        foreign = kind == RELOCATED_IMAGE and OURS not in core[offset:offset + size]
        if foreign or kind in (REGISTERS, UNIFORM_REGISTERS):
            core[offset:offset + size] = bytes(size)
    core = bytes(core).replace(DIRECTORY, INSTEAD)
    (HERE / f"{name}.core.gz").write_bytes(gzip.compress(core, 9, mtime=0))
