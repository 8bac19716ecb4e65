"""cudiag bench adam over a double of the driver: what it takes is told, and kept where profiles look for it."""
from cudiag_scenario import *

if not GPU_COMMAND.exists():
    raise CannotRun("cudiag-gpu was not built: no nvcc")
world = World()
measuring_driver(world)
card = world.home / ".local/state/cudiag/cards/GPU-00010203-0405-0607-0809-0a0b0c0d0e0f.json"

told = world.cudiag("bench", "adam").ends_with(0, "Double 9000", "copy: 4000 GB/s", str(card))
# 28 bytes for each element; a kernel of 2 us counts the step before.
line = re.search(r"^float32 +100,000,000 +100 +(\S+) +(\d+) +(\d+) % +(\S+) +(\S+)$", told.stdout, re.MULTILINE) or fail(told)
expected_ms = (10 ** 8 * 28 / 3960e3 + 2) / 1e3
assert abs(float(line[1]) - expected_ms) < 0.001 and line[3] == "99", (line[0], expected_ms)
assert float(line[4]) > float(line[5]) > float(line[1]), line[0]      # 12 launches of 320 chunks, or 2 of 2240

kept = json.loads(card.read_text())
assert (kept["schema"], kept["card"]["name"], kept["card"]["sm"]) == (1, "Double 9000", "9.0"), kept["card"]
assert card.stat().st_mode & 0o777 == 0o600 and card.parent.stat().st_mode & 0o777 == 0o700
kinds = {(r["implementation"], r["dtype"], r.get("large_tables"), r.get("double_math")) for r in kept["adamw"]}
assert len(kinds) == 2 * 4 + 1, kinds
large, = (r for r in kept["adamw"] if (r["implementation"], r["dtype"], r["elements"], r["tensors"]) == ("cudiag", "bfloat16+master", 10 ** 9, 100))
assert large["bytes"] == 28 * 10 ** 9 and large["launches"] == 2, large
torch, = (r for r in kept["adamw"] if r["implementation"] == "fused" and r["dtype"] == "float32" and r["large_tables"] and not r["double_math"]
          and (r["elements"], r["tensors"]) == (10 ** 7, 10_000))
assert torch["launches"] == -(-10_000 // 770) + -(-10_000 // 252), torch
assert kept["fused_error"] == 0.02 and kept["checks"], kept["fused_error"]

# A smaller card is measured with what fits; one size alone is told and not kept; JSON is the file.
small = world.cudiag("bench", "adam", "--json", env={"MEASURING_FREE_GB": "7"}, runs=world.root / "runs").ends_with(0)
sizes = {r["elements"] for r in json.loads(small.stdout)["adamw"]}
assert max(sizes) == 131_072_000 and min(sizes) == 10_000, sizes
assert json.loads((world.root / "runs/cards" / card.name).read_text()) == json.loads(small.stdout)
card.unlink()
one = world.cudiag("bench", "adam", "--elements", "5000", "--tensors", "3", "--dtype", "float16+master").ends_with(0, "float16+master", "5,000")
assert not card.exists() and "kept" not in one.stderr, one
world.cudiag("report", runs=world.root / "runs").ends_with(3, "no runs are recorded")       # cards are no run

probed = subprocess.run([GPU_COMMAND, "--probe"], env=world.variables(), capture_output=True, text=True, check=True)
gpu, = json.loads(probed.stdout)["gpus"]
assert (gpu["uuid"], gpu["sm"], gpu["memory_bytes"], gpu["driver_cuda"]) == (card.stem, "9.0", 24 << 30, 13000), gpu
