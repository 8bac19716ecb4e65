"""`cudiag libs` tells for which architectures a file has device code; one without any has no such line."""
import json

from cudiag_scenario import *

world = World()
seeds = Path(__file__).resolve().parents[3] / "fuzz/corpus/fatbin"
world.cudiag("libs", seeds / "wrapper").ends_with(0, "device code: sm_80 (SASS)\n")
world.cudiag("libs", seeds / "compressed").ends_with(0, "device code: sm_80 sm_100f (SASS), compute_100f (PTX)\n")
world.cudiag("libs", seeds / "cubin_12").ends_with(0, "device code: sm_90a (SASS)\n")
asked = world.cudiag("libs", seeds / "ptx", "--json").ends_with(0)
told = json.loads(asked.stdout)["device_code"]
if told != [{"name": "compute_90a", "kind": "ptx", "sm": 90, "variant": "a", "ptx_version": "8.4", "relocatable": False}]:
    fail(f"not what the file has: {told}")
plain = world.cudiag("libs", "/bin/sh")
if "device code" in plain.stdout or json.loads(world.cudiag("libs", "/bin/sh", "--json").stdout)["device_code"] != []:
    fail(f"/bin/sh has no device code\n{plain}")
