"""A module that nobody installed is Python's own matter: its text says all that there is to say."""
from cudiag_scenario import *

world = World("setuptools")
world.package("apexlike", "import einops_that_nobody_installed\n")
world.under_shim(world.python, "-c", "import apexlike").is_silent(status=1)
