"""A program in C shows nothing of NCCL's error and ends. The call is recorded, with what NCCL itself said of it; linked read-only too."""
from cudiag_scenario import *

world = World("nvidia-nccl-cu13==2.29.7")
lib = world.site / "nvidia/nccl/lib"
source = world.write("meet.c", """
#include <stdio.h>
typedef struct { char bytes[128]; } ncclUniqueId;
int ncclGetUniqueId(ncclUniqueId*);
int main(void) {
    ncclUniqueId id;
    if (ncclGetUniqueId(&id) != 0) { puts("meeting failed"); return 7; }
    puts("met");
    return 0;
}
""")
for how in ("-z,lazy", "-z,now"):
    program = world.root / f"meet{how[-3:]}"
    subprocess.run(["gcc", "-o", program, source, f"-L{lib}", "-l:libnccl.so.2", f"-Wl,-rpath,{lib},{how}"], check=True)
    if world.alone(program)[0] != 0:
        raise CannotRun("NCCL finds no network interface on this machine")
    world.under_shim(program).is_silent()
    run = world.under_shim(program, env={"NCCL_SOCKET_IFNAME": "eth99"})
    run.fails_with("meeting failed", status=7)
    finding = run.said("nccl-no-interface", result="ncclInvalidUsage", call="ncclGetUniqueId", called_by=str(program),
                       last_error="Bootstrap : no socket interface found", nccl=str(lib / "libnccl.so.2"), nccl_version="2.29.7")
    finding.proposes("unset NCCL_SOCKET_IFNAME", first=True)
    assert finding.json["confidence"] == "likely", finding.json

# A program that fails of something else later, and says so, has handled NCCL's error.
program = world.write("goes_on.py", f"""
import ctypes
nccl = ctypes.CDLL("{lib}/libnccl.so.2")
print(nccl.ncclGetUniqueId(ctypes.create_string_buffer(128)))
raise ValueError("no such file")
""")
run = world.under_shim(world.python, program, env={"NCCL_SOCKET_IFNAME": "eth99"})
run.fails_with("ValueError: no such file")
run.did_not_say("nccl-no-interface", "nccl-system-error")
