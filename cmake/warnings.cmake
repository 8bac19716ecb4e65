# Warnings are errors in our own code; other people's headers come in as SYSTEM.
add_library(cudiag_warnings INTERFACE)
target_compile_options(cudiag_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
  -Wnon-virtual-dtor -Wold-style-cast -Wcast-align -Woverloaded-virtual -Wformat=2 -Werror)
