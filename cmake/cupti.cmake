# libcudiag-cupti.so: a guest like the shim (cmake/shim.cmake), loaded by it into a process that is profiled. No thread-local
# storage at all: what is loaded late finds little room for it.
add_library(cudiag_cupti SHARED ${PROJECT_SOURCE_DIR}/cupti/buffers.cpp ${PROJECT_SOURCE_DIR}/cupti/mux.cpp
  ${PROJECT_SOURCE_DIR}/cupti/real.cpp ${PROJECT_SOURCE_DIR}/cupti/seat.cpp ${PROJECT_SOURCE_DIR}/shim/loaded_object.cpp
  ${PROJECT_SOURCE_DIR}/record/writer.cpp)
target_include_directories(cudiag_cupti PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(cudiag_cupti PRIVATE cudiag_warnings)
target_compile_options(cudiag_cupti PRIVATE -O2 -fPIC -fvisibility=hidden -fno-stack-protector -fasynchronous-unwind-tables
  -U_FORTIFY_SOURCE -fno-exceptions -fno-rtti -fno-threadsafe-statics)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(cudiag_cupti PRIVATE -fcf-protection=full)
endif()
set(CUDIAG_CUPTI_EXPORTS ${PROJECT_SOURCE_DIR}/cupti/exports.map)
set_target_properties(cudiag_cupti PROPERTIES OUTPUT_NAME cudiag-cupti LINKER_LANGUAGE C
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin LINK_DEPENDS ${CUDIAG_CUPTI_EXPORTS})
target_link_options(cudiag_cupti PRIVATE -Wl,--version-script=${CUDIAG_CUPTI_EXPORTS} -Wl,-z,defs -Wl,-z,lazy -Wl,--as-needed
  -Wl,--hash-style=gnu -Wl,-O1 -nostartfiles)
