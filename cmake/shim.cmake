# The link rules of a guest: libcudiag.so needs libc alone, exports what it interposes and nothing else, takes a few words of
# thread-local storage laid out at start, and binds lazily (a symbol that a foreign libc lacks must not end the program).
file(GLOB CUDIAG_SHIM_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shim/*.cpp ${PROJECT_SOURCE_DIR}/shim/*.S
  ${PROJECT_SOURCE_DIR}/shim/cuda/*.cpp
  ${PROJECT_SOURCE_DIR}/shim/nccl/*.cpp
  ${PROJECT_SOURCE_DIR}/shim/intercept/*.cpp
  ${PROJECT_SOURCE_DIR}/shim/intercept/*.S)
# .incbin is no dependency that the compiler tells of.
set_source_files_properties(${PROJECT_SOURCE_DIR}/shim/step_hooks.S PROPERTIES OBJECT_DEPENDS ${PROJECT_SOURCE_DIR}/shim/step_hooks.py)
add_library(cudiag_shim SHARED ${CUDIAG_SHIM_SOURCES} ${PROJECT_SOURCE_DIR}/record/writer.cpp
  ${PROJECT_SOURCE_DIR}/record/journal.cpp)
target_include_directories(cudiag_shim PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(cudiag_shim PRIVATE cudiag_warnings)
target_compile_options(cudiag_shim PRIVATE -O2 -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-stack-protector
  -fasynchronous-unwind-tables -U_FORTIFY_SOURCE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics>)
# A wrapper does not reuse the stack of its own arguments for another call's: a program that passes fewer than a function has would find
# its frame written to (tests/shim/frames_without_the_gil.py calls so).
set_source_files_properties(${PROJECT_SOURCE_DIR}/shim/cuda/driver.cpp PROPERTIES COMPILE_OPTIONS -fno-optimize-sibling-calls)
# Marked as fit for shadow stacks, as what distributions build is: ld.so turns them off for a process with an unmarked object.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(cudiag_shim PRIVATE -fcf-protection=full)
endif()
set(CUDIAG_EXPORTS ${PROJECT_SOURCE_DIR}/shim/exports.map)
# Linked by the C driver: the C++ one would add libstdc++ and libgcc_s.
set_target_properties(cudiag_shim PROPERTIES OUTPUT_NAME cudiag LINKER_LANGUAGE C
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin LINK_DEPENDS ${CUDIAG_EXPORTS})
target_link_options(cudiag_shim PRIVATE -Wl,--version-script=${CUDIAG_EXPORTS} -Wl,-z,defs -Wl,-z,lazy -Wl,--as-needed
  -Wl,--hash-style=gnu -Wl,-O1 -nostartfiles)
