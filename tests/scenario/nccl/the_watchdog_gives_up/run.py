"""torch's watchdog waits for a collective in a thread of its own, and throws there: nobody catches that, and Python is aborted without a word of its
own. A double of the watchdog (torch's needs a GPU: tests/gpu/nccl_and_jit.py) beside the real NCCL."""
from cudiag_scenario import *

world = World("nvidia-nccl-cu13==2.29.7")
watchdog = world.library("libwatchdog.so", """
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
namespace c10 {
struct DistBackendError : std::exception {                 // as torch's: a text that is made early
    std::string text;
    explicit DistBackendError(std::string words) : text(words) {}
    const char* what() const noexcept override { return text.c_str(); }
};
}
extern "C" void watch() {
    std::thread([] {
        std::exception_ptr found;
        try { throw c10::DistBackendError("[PG ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog thread terminated with exception: [Rank 1] "
            "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) "
            "ran for 600013 milliseconds before timing out.\\nException raised from checkTimeout at ProcessGroupNCCL.cpp:661"); }
        catch (...) { found = std::current_exception(); }
        std::rethrow_exception(found);
    }).join();
}
""", "-pthread")
program = world.write("train.py", f"""
import ctypes
ctypes.CDLL("{world.site}/nvidia/nccl/lib/libnccl.so.2")
ctypes.CDLL({str(watchdog)!r}).watch()
""")
run = world.under_shim(world.python, program, env={"RANK": "1", "WORLD_SIZE": "2"})
run.fails_with("terminate called after throwing an instance of 'c10::DistBackendError'").was_killed_by(signal.SIGABRT)
finding = run.said("nccl-hang", collective="ALLREDUCE", sequence="41", numel_in="1024", timeout_ms="600000", waited_ms="600013", rank="1",
                   nccl_version="2.29.7").causes("process-killed")
assert finding.title.startswith("rank 1 waited 600 s in vain for the other ranks in ALLREDUCE number 41"), finding.title
run.said("process-killed", printed=False, signal="SIGABRT", exception="c10::DistBackendError")
assert [f.slug for f in run.findings()][0] == "nccl-hang" and finding.json["rank"] == 1, run.findings()
