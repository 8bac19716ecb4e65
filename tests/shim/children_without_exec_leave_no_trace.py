"""A CUDA program whose children fail to exec, by vfork or fork: they record nothing, and the program itself still can. A CUDA
program that ends badly has its libraries told even if no load failed; one without CUDA has not."""
from twin import *

bed = Bed()
bed.which("libcudart.so.12")
bed.which("libother.so.12")
link = ["-Wl,--no-as-needed", f"-L{bed.root}", f"-Wl,-rpath,{bed.root}"]
program = bed.program("cuda_program.c", *link, "-l:libcudart.so.12")
other = bed.program("cuda_program.c", *link, "-l:libother.so.12", name="other")
rounds = 0 if MACHINE else 5
for status in (0, 6):
    both = bed.twin(program, rounds, status)
    recordings = both.recordings()
    assert len(recordings) == (1 if status else 0), (status, recordings)
    if status:
        header = recordings[0][0]
        assert (header["pid"], header["end_how"], header["end_status"]) == (header["root_pid"], 1, 6), header
        modules = [entry["path"] for entry in recordings[0] if entry.kind == "module"]
        assert str(bed.root / "libcudart.so.12") in modules, modules
    assert bed.twin(other, rounds, status).recordings() == []
both = bed.twin(program, rounds, 6, "/absent/after-the-children.so")
recording, = both.recordings()
assert [entry["name"] for entry in recording if entry.kind == "dlopen_failed"] == ["/absent/after-the-children.so"], recording
