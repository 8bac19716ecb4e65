"""Test suites that come with their wheels pass under the shim as they do alone: numpy's of ctypes, DLPack and subprocesses, and what torch tells of
its environment (which starts a score of programs to do so)."""
import re

from cudiag_scenario import *

world = World(*torch_wheels(), "pytest==8.4.2", "iniconfig==2.1.0", "pluggy==1.6.0", "pygments==2.19.2", "packaging==25.0", "hypothesis==6.140.2", "attrs==25.3.0", "sortedcontainers==2.4.0")
changing = re.compile(r"in [\d.]+s|MHz|BogoMIPS|scaling|\d+ bytes free", re.I)


def steady(text):
    """Without lines that tell a time or a clock."""
    return [line for line in text.splitlines() if not changing.search(line)]


alone = world.alone(world.python, "-m", "torch.utils.collect_env")
under = world.under_shim(world.python, "-m", "torch.utils.collect_env", twin=False)
under.is_silent()
assert under.status == alone[0] == 0 and steady(under.stdout) == steady(alone[1]), (steady(under.stdout), steady(alone[1]))

suites = ("numpy.tests.test_ctypeslib", "numpy.tests.test_reloading", "numpy.tests.test_public_api", "numpy._core.tests.test_dlpack", "numpy.random.tests.test_extending")
command = [world.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", *suites]
alone = world.alone(*command)
under = world.under_shim(*command, twin=False)
under.is_silent()
outcome = re.findall(r"(\d+) (passed|failed|skipped|error|xfailed)", alone[1])
assert ("passed" in dict((b, a) for a, b in outcome)) and outcome == re.findall(r"(\d+) (passed|failed|skipped|error|xfailed)", under.stdout), (alone, under)
