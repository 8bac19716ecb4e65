# -DCUDIAG_SANITIZE=address,undefined or =thread. The shim itself is never sanitized: under LD_PRELOAD a sanitizer's
# runtime would have to come first in the process (tests/unit builds its sources as an object library instead).
set(CUDIAG_SANITIZE "" CACHE STRING "Sanitizers for the command and the unit tests")
add_library(cudiag_sanitize INTERFACE)
if(CUDIAG_SANITIZE)
  target_compile_options(cudiag_sanitize INTERFACE -fsanitize=${CUDIAG_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(cudiag_sanitize INTERFACE -fsanitize=${CUDIAG_SANITIZE})
  set(CUDIAG_STATIC_COMMAND OFF)
endif()
