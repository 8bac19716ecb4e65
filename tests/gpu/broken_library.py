"""On a real GPU: a torch program that loads an extension whose CUDA library is absent is explained in place.

    python3 tests/gpu/broken_library.py BIN
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = """
import torch, ctypes
torch.zeros(1, device="cuda")
ctypes.CDLL({library!r})
"""


def main():
    bin_directory = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as root:
        root = pathlib.Path(root)
        subprocess.run(["gcc", "-shared", "-o", root / "libcudart.so.11.0", "-Wl,-soname,libcudart.so.11.0", "-xc", os.devnull], check=True)
        subprocess.run(["gcc", "-shared", "-o", root / "libfused.so", "-xc", os.devnull, "-xnone", "-Wl,--no-as-needed",
                        root / "libcudart.so.11.0"], check=True)
        (root / "libcudart.so.11.0").unlink()
        env = os.environ | {"LD_PRELOAD": str(bin_directory / "libcudiag.so"), "CUDIAG_DIR": str(root / "runs")}
        done = subprocess.run([sys.executable, "-c", PROGRAM.format(library=str(root / "libfused.so"))], env=env,
                              capture_output=True, text=True, timeout=300)
        print(done.stderr)
        run = next((root / "runs").iterdir())
        report = json.loads(subprocess.run([bin_directory / "cudiag", "report", "--json", run], capture_output=True, text=True).stdout)
        slugs = [finding["slug"] for finding in report["findings"]]
        assert done.returncode == 1 and "loader-missing-library" in slugs, (done.returncode, slugs)
        libs = [m for p in report["run"]["processes"] for m in p["modules"] if "/libcu" in m]
        print(f"{slugs}; {len(libs)} CUDA libraries mapped, the driver at {[m for m in libs if 'libcuda.so' in m]}")


main()
