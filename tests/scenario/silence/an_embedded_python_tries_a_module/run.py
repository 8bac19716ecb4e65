"""ncu's way: a Python within a program, of which nothing is to be seen, tries modules of another Python, which lack its symbols, and does without;
then the program ends with a status for something else. The same of a file that is no module of Python is told."""
from cudiag_scenario import *

world = World()
source = "extern int PyExc_SystemError; int *give(void) { return &PyExc_SystemError; }\n"
module = world.library("lib-dynload/_bz2.cpython-312-x86_64-linux-gnu.so", source, "-Wl,-z,lazy")
plugin = world.library("plugins/libplugin.so", source, "-Wl,-z,lazy")
code = world.write("tool.c", """#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char** arguments) {
    for (int i = 2; i < count; ++i)
        if (dlopen(arguments[i], RTLD_NOW) == NULL) fprintf(stderr, "%s", dlerror() == NULL ? "loaded " : "");
    sleep((unsigned)atoi(arguments[1]));
    fputs("the application returned an error\\n", stderr);
    return 3;
}
""")
tool = world.root / "tool"
subprocess.run(["gcc", "-o", tool, code], check=True)

for seconds in ("0", "3"):        # 3: longer than it waits before it speaks of breakage
    world.under_shim(tool, seconds, module, module).says_nothing(status=3)
run = world.under_shim(tool, "0", plugin)
assert [finding.slug for finding in run.findings()] == ["loader-symbol-version"] and "PyExc_SystemError" in run.spoken(), run
