# Building for another machine: what libraries hold objects for this one comes as source instead, and headers that do not
# depend on the machine are taken without the rest of /usr/include.
set(TRIREME_CROSS_HEADERS ${CMAKE_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${TRIREME_CROSS_HEADERS})
foreach(header fmt xxhash.h CLI nlohmann)
  find_path(folder_of_${header} ${header} PATHS /usr/include NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)
  file(CREATE_LINK ${folder_of_${header}}/${header} ${TRIREME_CROSS_HEADERS}/${header} SYMBOLIC)
endforeach()
include_directories(SYSTEM ${TRIREME_CROSS_HEADERS})

# CPython's headers ask for the configuration of the machine they compile for. All 64-bit machines with the lowest byte first
# share what the stable ABI looks at.
file(GLOB configurations /usr/include/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/python3*/pyconfig.h)
foreach(configuration ${configurations})
  get_filename_component(version ${configuration} DIRECTORY)
  get_filename_component(version ${version} NAME)
  configure_file(${configuration} ${TRIREME_CROSS_HEADERS}/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu/${version}/pyconfig.h COPYONLY)
  set(Python3_INCLUDE_DIR /usr/include/${version} CACHE PATH "CPython's headers")
endforeach()

set(ASMJIT_SOURCE ${CMAKE_SOURCE_DIR}/build/asmjit CACHE PATH "asmjit's source, as tools/setup.sh all leaves it")
file(GLOB_RECURSE asmjit_sources ${ASMJIT_SOURCE}/src/asmjit/core/*.cpp ${ASMJIT_SOURCE}/src/asmjit/x86/*.cpp)
if(NOT asmjit_sources)
  message(FATAL_ERROR "no source of asmjit at ${ASMJIT_SOURCE}; `tools/setup.sh all` fetches it")
endif()
add_library(asmjit_from_source STATIC ${asmjit_sources})
target_compile_definitions(asmjit_from_source PUBLIC ASMJIT_STATIC ASMJIT_NO_AARCH64)
target_include_directories(asmjit_from_source SYSTEM PUBLIC ${ASMJIT_SOURCE}/src)
target_compile_options(asmjit_from_source PRIVATE -w)
set_target_properties(asmjit_from_source PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)

if(TRIREME_TESTS)
  set(INSTALL_GTEST OFF)
  set(BUILD_GMOCK OFF)
  add_subdirectory(/usr/src/googletest googletest EXCLUDE_FROM_ALL)
endif()
