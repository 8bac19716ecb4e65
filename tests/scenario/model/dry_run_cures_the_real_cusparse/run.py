"""A dry run of ld.so tells that a newer nvJitLink cures this cuSPARSE, and that it does not once the old one is mapped."""
from cudiag_scenario import *

unit = BIN.parent / "tests/unit/cudiag_unit"
if not unit.exists():
    raise CannotRun("the unit tests are not built")
world = World()
for name, wheels in {"old": ["nvidia-cusparse-cu12==12.3.1.170", "nvidia-nvjitlink-cu12==12.1.105"], "new": ["nvidia-nvjitlink-cu12==12.4.127"]}.items():
    for requirement in wheels:
        link_tree(wheel(requirement), world.root / name)
test = "DryRunOfALoad.CuresTheRealCusparseOnlyWhenNoOldNvjitlinkIsMapped"
status, stdout, stderr = world.alone(unit, f"--gtest_filter={test}", env={"CUDIAG_NVJITLINK_PAIR": world.root})
assert status == 0 and f"[       OK ] {test}" in stdout, stdout + stderr
