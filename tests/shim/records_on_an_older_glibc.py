"""A root with glibc 2.31 (Debian 11, as Ubuntu 20.04), where dlopen is in libdl.so.2: the file built here loads there and
records. The root is made once by debootstrap, and kept below the build directory."""
import fake_driver
from roots import debian_root
from twin import *

if MACHINE:
    cannot_run_here("one machine at a time")
root = debian_root("bullseye")

bed = Bed()
place = root / "twin"
shutil.rmtree(place, ignore_errors=True)
place.mkdir()
atexit.register(shutil.rmtree, place, ignore_errors=True)
shutil.copy(bed.library, place)
perl = 'require DynaLoader; my $h = DynaLoader::dl_load_file($ARGV[0], 0); print defined $h ? "there\\n" : DynaLoader::dl_error() . "\\n"; exit 3;'
environment = {"PATH": "/usr/bin:/bin", "CUDIAG_PRINT": "off", "CUDIAG_DIR": "/twin/runs", "LC_ALL": "C"}
version = subprocess.run(["chroot", str(root), "ldd", "--version"], capture_output=True, text=True).stdout.splitlines()[0]


shutil.copy(fake_driver.build(bed), place)
# By the dlsym of libdl.so.2: a function of the driver that is there (called, and refused), and one that is not.
asks = """require DynaLoader; my $h = DynaLoader::dl_load_file($ARGV[0], 0) or die DynaLoader::dl_error();
print defined DynaLoader::dl_find_symbol($h, "cuNothing") ? "there\\n" : DynaLoader::dl_error() . "\\n";
DynaLoader::dl_install_xsub("main::init", DynaLoader::dl_find_symbol($h, "cuInit")); init(); exit 3;"""
environment |= fake_driver.environment({"cuInit": 100}, FAKE_DRIVER_QUIET="1")


def inside(*command, shim):
    preload = {"LD_PRELOAD": "/twin/libcudiag.so"} if shim else {}
    done = subprocess.run([shutil.which("chroot"), str(root), "/usr/bin/env", *(f"{k}={v}" for k, v in preload.items()), *command], env=environment,
                          capture_output=True, text=True, timeout=LIMIT_S)
    return Result(done.returncode, done.stdout, done.stderr)


for command in (["perl", "-e", perl, "/absent/old.so"], ["perl", "-e", asks, "/twin/libcuda.so.1"], ["perl", "-e", perl, "libm.so.6"], ["sh", "-c", "exit 4"], ["bash", "-c", "ls /absent; (exit 3)"],
                ["sh", "-c", "kill -9 $$"], ["bash", "-c", "exec perl -e 'exit 2'"]):
    alone, under = inside(*command, shim=False), inside(*command, shim=True)
    assert alone == under, (command, alone, under)
records = [read(path) for path in (place / "runs").glob("*/*.rec")]
failed = [(entry["name"], entry["text"]) for record in records for entry in record if entry.kind == "dlopen_failed"]
assert failed == [("/absent/old.so", "/absent/old.so: cannot open shared object file: No such file or directory")], (version, failed)
assert records[0][0]["end_status"] == 3, records[0][0]
refused = [(entry["name"], entry["error"], entry["text"]) for record in records for entry in record if entry.kind == "cuda_call_failed"]
assert refused == [("cuInit", 100, "words for 100")], (version, refused)
print(version)
