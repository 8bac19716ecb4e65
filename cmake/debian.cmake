# The .deb, by CPack: what Debian wants beside what is installed. Made by scripts/package deb.
cudiag_compress("${PROJECT_SOURCE_DIR}/CHANGELOG.md" "${made}/changelog.gz")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of SOURCE_DATE_EPOCH, if that is set
# As dpkg's own tools take them: who makes the package says who they are.
set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
if(NOT DEFINED ENV{DEBFULLNAME} OR NOT DEFINED ENV{DEBEMAIL})
  set(maintainer "the authors of cudiag <cudiag@localhost>")
endif()
file(WRITE "${made}/changelog.Debian" "cudiag (${PROJECT_VERSION}-1) unstable; urgency=medium

  * Release ${PROJECT_VERSION}: see changelog.gz.

 -- ${maintainer}  ${date}
")
cudiag_compress("${made}/changelog.Debian" "${made}/changelog.Debian.gz")
install(FILES "${made}/changelog.gz" "${made}/changelog.Debian.gz" DESTINATION "${doc}")
install(FILES "${packaging}/debian/lintian-overrides" DESTINATION "${share}/lintian/overrides" RENAME cudiag)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cudiag)
set(CPACK_PACKAGE_VENDOR cudiag)
set(CPACK_PACKAGE_CONTACT "${maintainer}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "explains why CUDA programs fail, and which command mends it")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Preloaded into a program, libcudiag.so records what CUDA programs die of:
missing and wrong shared libraries, failed builds of extensions, drivers
that are too old, kernels that spoil the GPU. The command cudiag explains it,
with its evidence and the command that mends it. Needs no GPU, no CUDA
toolkit and no daemon.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)  # Debian's dpkg knows no zstd before 12
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${packaging}/debian/triggers")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
include(CPack)
