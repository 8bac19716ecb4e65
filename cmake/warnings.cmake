# Warnings are errors in our own code; other people's headers come in as SYSTEM.
add_library(cudiag_warnings INTERFACE)
target_compile_options(cudiag_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
  -Wnon-virtual-dtor -Wold-style-cast -Wcast-align -Woverloaded-virtual -Wformat=2 -Werror)
# GCC 12 sees overflows in std::string's own concatenation when it optimizes (gcc.gnu.org PR 105329, 105651); clang-tidy looks at bounds too.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(cudiag_warnings INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
endif()
