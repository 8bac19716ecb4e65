# What an installation holds, and where: `cmake --install build --prefix P` and every package of scripts/package come from here.
#   P/bin/cudiag   P/lib[/TRIPLET]/libcudiag.so, libcudiag-cupti.so   P/share/man, P/share/doc/cudiag, completions for bash, zsh and fish
# The command and the library find each other by these places alone (cli/lib.cpp, shim/explain.cpp).
include(GNUInstallDirs)

# All are built into one directory. What is named here is installed, in every package.
set(CUDIAG_PROGRAMS cudiag)
set(CUDIAG_LIBRARIES libcudiag.so libcudiag-cupti.so)
if(CUDIAG_SHIM_ONLY)
  set(CUDIAG_PROGRAMS)
endif()

set(CUDIAG_PACKAGE "" CACHE STRING "Which package is made (scripts/package tells): deb, tar, or none")
set(CUDIAG_BUILT "${CMAKE_BINARY_DIR}/bin" CACHE PATH
  "Install the programs and libraries of this directory; if it is another than the build's own, nothing is compiled")

if(SKBUILD)  # a wheel: into the environment's bin and lib, so that it lies there as any other installation does
  set(bin "${SKBUILD_SCRIPTS_DIR}")
  set(prefix "${SKBUILD_DATA_DIR}/")
else()
  set(bin "${CMAKE_INSTALL_BINDIR}")
  set(prefix "")
endif()
set(share "${prefix}${CMAKE_INSTALL_DATADIR}")
set(doc "${prefix}${CMAKE_INSTALL_DOCDIR}")

# cudiag-gpu cannot be static (it opens libcuda.so.1), so it needs the glibc that it was built with: no package has it.
if(TARGET cudiag-gpu AND NOT SKBUILD AND CUDIAG_PACKAGE STREQUAL "")
  list(APPEND CUDIAG_PROGRAMS cudiag-gpu)
endif()
list(TRANSFORM CUDIAG_PROGRAMS PREPEND "${CUDIAG_BUILT}/" OUTPUT_VARIABLE programs)
list(TRANSFORM CUDIAG_LIBRARIES PREPEND "${CUDIAG_BUILT}/" OUTPUT_VARIABLE libraries)
install(PROGRAMS ${programs} DESTINATION "${bin}")
install(FILES ${libraries} DESTINATION "${prefix}${CMAKE_INSTALL_LIBDIR}")

# gzip leaves name and time out (-n), so that two builds give the same bytes.
function(cudiag_compress from to)
  execute_process(COMMAND gzip -9nc "${from}" OUTPUT_FILE "${to}" COMMAND_ERROR_IS_FATAL ANY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${from}")
endfunction()

set(packaging "${PROJECT_SOURCE_DIR}/packaging")
set(made "${PROJECT_BINARY_DIR}/packaging")
configure_file("${packaging}/cudiag.1.in" "${made}/cudiag.1" @ONLY)
cudiag_compress("${made}/cudiag.1" "${made}/cudiag.1.gz")
install(FILES "${made}/cudiag.1.gz" DESTINATION "${prefix}${CMAKE_INSTALL_MANDIR}/man1")
install(FILES "${packaging}/completions/cudiag.bash" DESTINATION "${share}/bash-completion/completions" RENAME cudiag)
install(FILES "${packaging}/completions/cudiag.fish" DESTINATION "${share}/fish/vendor_completions.d")
set(zsh "site-functions")
if(CUDIAG_PACKAGE STREQUAL "deb")
  set(zsh "vendor-completions")
endif()
install(FILES "${packaging}/completions/_cudiag" DESTINATION "${share}/zsh/${zsh}")

if(NOT SKBUILD)
  install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${packaging}/copyright" DESTINATION "${doc}")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION "${doc}" FILES_MATCHING PATTERN "*.md")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples" DESTINATION "${doc}")
  if(NOT CUDIAG_PACKAGE STREQUAL "deb")
    install(FILES "${PROJECT_SOURCE_DIR}/CHANGELOG.md" "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${doc}")
  endif()
endif()

if(CUDIAG_PACKAGE STREQUAL "tar")
  configure_file("${packaging}/modulefile.in" "${made}/modulefile" @ONLY)
  install(FILES "${made}/modulefile" DESTINATION "modulefiles/cudiag" RENAME "${PROJECT_VERSION}")
elseif(CUDIAG_PACKAGE STREQUAL "deb")
  include(cmake/debian.cmake)
endif()
