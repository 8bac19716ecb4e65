"""Bad usage gives one clear line and exit status 2; what cannot be read gives 3."""
from cudiag_scenario import *

world = World()
nowhere = world.root / "none"
world.cudiag("report", "--no-such-option").ends_with(2, "cudiag: ", "--no-such-option")
world.cudiag("no-such-command").ends_with(2, "no-such-command")
world.cudiag().ends_with(2, "cudiag: ")
world.cudiag("report", nowhere, "--last").ends_with(2)
world.cudiag("report", nowhere).ends_with(3, str(nowhere))
world.cudiag("report", runs=nowhere).ends_with(3, str(nowhere))
world.cudiag("explain", "no-such-slug").ends_with(2, "no-such-slug")
world.cudiag("explain", "loader-missing-library").ends_with(0)
world.cudiag("libs", nowhere).ends_with(3, str(nowhere))
world.cudiag("bench").ends_with(2)
world.cudiag("bench", "adam", "--dtype", "float8", "--elements", "9").ends_with(2, "float8")
world.cudiag("bench", "adam", "--tensors", "9").ends_with(2, "--elements")
world.cudiag("bench", "adam", "--elements", "8", "--tensors", "9").ends_with(2, "more tensors than elements")
for command in ("run", "report", "explain", "libs", "bench", "lib"):
    world.cudiag(command, "--help").ends_with(0)
world.cudiag("lib").ends_with(0, str(LIBRARY))

closed = world.root / "closed"
(closed / "1").mkdir(parents=True)
(closed / "1").chmod(0)
world.cudiag("report", closed / "1", preexec_fn=without_root_privileges).ends_with(3, "ermission denied")
(closed / "1").chmod(0o700)
