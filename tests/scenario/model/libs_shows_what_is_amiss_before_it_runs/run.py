"""`cudiag libs` reads files alone: what a library needs, by which rule each is found, and what is nowhere."""
from cudiag_scenario import *

hide_toolkit()
world = World("nvidia-cusparse-cu12==12.3.1.170", "nvidia-nvjitlink-cu12==12.4.127")
cusparse = world.site / "nvidia/cusparse/lib/libcusparse.so.12"
whole = world.cudiag("libs", cusparse).ends_with(0)
assert re.search(r"libnvJitLink\.so\.12 → \S+/nvjitlink/lib/libnvJitLink\.so\.12 \[DT_RUNPATH of ", whole.stdout), whole
assert re.search(r"libc\.so\.6 → \S+ \[(ld\.so\.cache|system directory)\]", whole.stdout), whole

world.uninstall("nvidia-nvjitlink-cu12")
world.cudiag("libs", cusparse).ends_with(1, "libnvJitLink.so.12 → cannot open shared object file", "absent (DT_RUNPATH of ")
tree = json.loads(world.cudiag("libs", "--json", cusparse).stdout)
missing = [node["name"] for node in tree["needs"] if not node["path"]]
assert missing == ["libnvJitLink.so.12"], tree
