"""An unrelated module has pulled its environment's older libstdc++ into the process; what is loaded first wins. The last
error that the user sees is an AttributeError out of __del__."""
from cudiag_scenario import *
from broken import old_libstdcxx

world = World()
old = old_libstdcxx(world, "env/lib")
snappy = world.extension("snappy", [], f"-L{old.parent}", "-Wl,--no-as-needed", f"-l:{old.name}",
                         "-Wl,-rpath,$ORIGIN/../../../../env/lib")
adam = world.extension("cpu_adam", declares="#include <filesystem>", runs="std::filesystem::exists(\"/\")", language="c++")
train = world.write("train.py", """
import snappy
class DeepSpeedCPUAdam:
    def __init__(self):
        import cpu_adam
        self.ds_opt_adam = cpu_adam
    def __del__(self):
        self.ds_opt_adam.destroy_adam()
def main():
    optimizer = DeepSpeedCPUAdam()
main()
""")

run = world.under_shim(world.python, train)
run.fails_with("AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'")

finding = run.said("loader-libstdcxx-too-old", file=adam, in_use=ends("/env/lib/libstdc++.so.6"),
                   in_use_best="GLIBCXX_3.4.15", brought_by=snappy)
run.proposes_nothing_like("pip install .*deepspeed", r"unset LD_LIBRARY_PATH", r"rm -r")

world.under_shim(world.python, "-c", "import cpu_adam, snappy; cpu_adam.run()").is_silent()
