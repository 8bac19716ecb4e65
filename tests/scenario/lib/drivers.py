"""A double of the NVIDIA driver's library: as much of it as a CUDA runtime asks before it gives up."""

import ctypes

from machine import CannotRun

_SOURCE = """
#include <string.h>
int cuInit(unsigned flags) {{ return {init}; }}
int cuDriverGetVersion(int* version) {{ *version = {version}; return 0; }}
int cuDeviceGetCount(int* count) {{ *count = 0; return {init}; }}
int cuGetErrorName(int error, const char** name) {{ *name = "CUDA_ERROR_OF_A_DOUBLE"; return 0; }}
int cuGetErrorString(int error, const char** text) {{ *text = "told by a double"; return 0; }}
int cuGetExportTable(const void** table, const void* id) {{ *table = 0; return 500; }}
int cuGetProcAddress_v2(const char* symbol, void** fn, int version, unsigned long flags, int* status);
int cuGetProcAddress(const char* symbol, void** fn, int version, unsigned long flags);
static int other() {{ return {init} ? {init} : 100; }}
static void* entry(const char* symbol) {{
  if (!strcmp(symbol, "cuInit")) return cuInit;
  if (!strcmp(symbol, "cuDriverGetVersion")) return cuDriverGetVersion;
  if (!strcmp(symbol, "cuDeviceGetCount")) return cuDeviceGetCount;
  if (!strcmp(symbol, "cuGetExportTable")) return cuGetExportTable;
  if (!strcmp(symbol, "cuGetErrorName")) return cuGetErrorName;
  if (!strcmp(symbol, "cuGetErrorString")) return cuGetErrorString;
  if (!strcmp(symbol, "cuGetProcAddress")) return cuGetProcAddress_v2;
  return other;
}}
int cuGetProcAddress_v2(const char* symbol, void** fn, int version, unsigned long flags, int* status) {{
  *fn = entry(symbol);
  if (status) *status = 0;
  return 0;
}}
int cuGetProcAddress(const char* symbol, void** fn, int version, unsigned long flags) {{ *fn = entry(symbol); return 0; }}
"""


def no_real_driver():
    """The story needs a machine whose own driver does not answer."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return
    raise CannotRun("this machine has a CUDA driver")


def fake_driver(world, init=0, version=13000, directory="driver", release=None):
    """libcuda.so.1 whose cuInit gives `init`, in that directory below the root; with a release, a link to
    libcuda.so.RELEASE, as the real one is installed. Puts the directory first on LD_LIBRARY_PATH; gives it."""
    no_real_driver()
    name = f"libcuda.so.{release}" if release else "libcuda.so.1"
    file = world.library(f"{directory}/{name}", _SOURCE.format(init=init, version=version), "-Wl,-soname,libcuda.so.1", "-w")
    if release:
        file.with_name("libcuda.so.1").symlink_to(name)
    before = world.set.get("LD_LIBRARY_PATH")
    world.set["LD_LIBRARY_PATH"] = str(file.parent) + (f":{before}" if before else "")
    return file.parent
