"""pip, compilers, shells: what runs beside a training job under the same LD_PRELOAD."""
from cudiag_scenario import *

world = World("nvidia-cuda-runtime-cu12==12.4.127", pip_inside=True)
c = world.write("hello.c", "#include <stdio.h>\nint main(void) { puts(\"hello\"); }\n")
cpp = world.write("hello.cpp", "#include <iostream>\nint main() { std::cout << \"hello\\n\"; }\n")

world.under_shim(world.python, "-m", "pip", "list").is_silent()
world.under_shim("gcc", "-Wall", "-o", world.root / "hello-c", c).is_silent()
world.under_shim("g++", "-Wall", "-o", world.root / "hello-cpp", cpp).is_silent()
world.under_shim(world.root / "hello-cpp").is_silent()
world.under_shim("gcc", "-c", "-o", world.root / "no.o", world.write("no.c", "#include <absent.h>\n")).is_silent(status=1)
world.under_shim("sh", "-c", "ls / | sort | head -2; env | grep -c PATH; true").is_silent()
