# `cpack -G DEB` in a build folder: libtrireme0.1 (the shared library), libtrireme-dev, and trireme (the tool). They hold
# what cmake/install.cmake puts down, and what Debian wants beside it.
set(TRIREME_CONTACT "Trireme maintainers <maintainers@trireme.invalid>" CACHE STRING "The maintainer of packages made by cpack")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME trireme)
set(CPACK_PACKAGE_CONTACT ${TRIREME_CONTACT})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiler for row-wise deep-learning kernels")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
    WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
if(DPKG_SHLIBDEPS AND NOT TRIREME_STATIC)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6")
endif()

set(library_package libtrireme${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(CPACK_COMPONENTS_ALL library development)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library_package})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION
    "Norms, softmax, gated units and losses, forward and backward, as machine code,\nPTX and WebAssembly with the same bits. This package has the shared library.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtrireme-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library_package} (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "Norms, softmax, gated units and losses, forward and backward, as machine code,\nPTX and WebAssembly with the same bits. This package has the headers for C and\nC++, the static library, and files for CMake and pkg-config.")
set(packages library:${library_package} development:libtrireme-dev)
if(TARGET trireme_tool)
  list(APPEND CPACK_COMPONENTS_ALL tool)
  set(CPACK_DEBIAN_TOOL_PACKAGE_NAME trireme)
  set(CPACK_DEBIAN_TOOL_PACKAGE_SECTION devel)
  set(CPACK_COMPONENT_TOOL_DESCRIPTION
      "Norms, softmax, gated units and losses, forward and backward, as machine code,\nPTX and WebAssembly with the same bits. This package has the command line, its\nmanual page, and completions for bash, zsh and fish.")
  list(APPEND packages tool:trireme)
endif()

# Each package has a copyright file and a changelog; plain installations have LICENSE and THIRD_PARTY_NOTICES instead.
set(notices ${CMAKE_BINARY_DIR}/package/debian)
file(WRITE ${notices}/triggers "activate-noawait ldconfig\n")
file(WRITE ${notices}/shlibs "libtrireme ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} ${library_package} (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${notices}/triggers ${notices}/shlibs)
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(READ THIRD_PARTY_NOTICES third_party)
file(WRITE ${notices}/copyright "Trireme, a compiler for row-wise deep-learning kernels.

Copyright The Trireme authors. Licensed under the Apache License, Version 2.0, whose text is in
/usr/share/common-licenses/Apache-2.0 on Debian systems.

${third_party}")
file(WRITE ${notices}/changelog "trireme (${PROJECT_VERSION}) unstable; urgency=medium

  * Version ${PROJECT_VERSION}, packaged by cpack.

 -- ${TRIREME_CONTACT}  ${now}
")
execute_process(COMMAND gzip -9nf ${notices}/changelog COMMAND_ERROR_IS_FATAL ANY)
foreach(each ${packages})
  string(REGEX MATCH "(.*):(.*)" _ ${each})
  install(FILES ${notices}/copyright ${notices}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CMAKE_MATCH_2}
          COMPONENT ${CMAKE_MATCH_1} EXCLUDE_FROM_ALL)
endforeach()
# What lintian need not say: cpack itself calls ldconfig beside the trigger; and the .pc file lies in the folder of its
# architecture where the build was configured with -DCMAKE_INSTALL_PREFIX=/usr.
function(allow component package)
  file(WRITE ${notices}/${package} "")
  foreach(tag ${ARGN})
    file(APPEND ${notices}/${package} "${package}: ${tag}\n")
  endforeach()
  install(FILES ${notices}/${package} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT ${component}
          EXCLUDE_FROM_ALL)
endfunction()
allow(library ${library_package} maintscript-calls-ldconfig)
if(CMAKE_INSTALL_LIBDIR STREQUAL lib)
  allow(development libtrireme-dev pkg-config-unavailable-for-cross-compilation)
endif()
include(CPack)
