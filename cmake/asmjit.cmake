# Target trireme_asmjit: the x86 encoder, fit for shared libraries too.
#
# Debian's libasmjit.a is compiled without -fPIC. Its own symbols are hidden, so that hardly matters; but its one
# reference to libc's stderr (R_X86_64_PC32) does not link into a shared library. We redirect it to a variable of our
# own, asmjit_stderr.cpp. An asmjit that is position independent already is used as it is.
if(CMAKE_CROSSCOMPILING)  # from its source (cross.cmake)
  set(asmjit_file $<TARGET_FILE:asmjit_from_source>)
  set(asmjit_headers ${ASMJIT_SOURCE}/src)
  set(TRIREME_ASMJIT_IS_PIC ON)
else()
  find_package(asmjit REQUIRED)
  get_target_property(asmjit_file asmjit::asmjit LOCATION)
  set(asmjit_headers $<TARGET_PROPERTY:asmjit::asmjit,INTERFACE_INCLUDE_DIRECTORIES>)
endif()

if(asmjit_file MATCHES "\\.a$" AND NOT DEFINED TRIREME_ASMJIT_IS_PIC)
  file(WRITE ${CMAKE_BINARY_DIR}/asmjit/probe.cpp "#include <asmjit/asmjit.h>
void* probe(asmjit::CodeHolder* code) { return new asmjit::x86::Compiler(code); }\n")
  try_compile(TRIREME_ASMJIT_IS_PIC ${CMAKE_BINARY_DIR}/asmjit/probe SOURCES ${CMAKE_BINARY_DIR}/asmjit/probe.cpp
              COMPILE_DEFINITIONS -fPIC LINK_OPTIONS -shared LINK_LIBRARIES asmjit::asmjit)
endif()

add_library(trireme_asmjit INTERFACE)
target_include_directories(trireme_asmjit SYSTEM INTERFACE ${asmjit_headers})

if(NOT CMAKE_CROSSCOMPILING AND NOT asmjit_file MATCHES "\\.a$")
  set(asmjit_archive "")
  target_link_libraries(trireme_asmjit INTERFACE asmjit::asmjit)
else()
  target_compile_definitions(trireme_asmjit INTERFACE ASMJIT_STATIC)
  set(asmjit_archive ${asmjit_file})
  if(NOT TRIREME_ASMJIT_IS_PIC)
    set(asmjit_archive ${CMAKE_BINARY_DIR}/asmjit/libtrireme_asmjit.a)
    add_library(asmjit_stderr OBJECT cmake/asmjit_stderr.cpp)
    add_custom_command(
      OUTPUT ${asmjit_archive}
      COMMAND ${CMAKE_OBJCOPY} --redefine-sym stderr=trireme_asmjit_stderr ${asmjit_file} ${asmjit_archive}
      COMMAND ${CMAKE_AR} q ${asmjit_archive} $<TARGET_OBJECTS:asmjit_stderr>
      DEPENDS ${asmjit_file} asmjit_stderr $<TARGET_OBJECTS:asmjit_stderr>
      COMMENT "Making asmjit fit for shared libraries"
      VERBATIM)
  endif()
  if(CMAKE_CROSSCOMPILING)
    add_custom_target(asmjit_archive DEPENDS asmjit_from_source)
    set(asmjit_archive_name $<TARGET_FILE_NAME:asmjit_from_source>)
  else()
    add_custom_target(asmjit_archive DEPENDS ${asmjit_archive})
    get_filename_component(asmjit_archive_name ${asmjit_archive} NAME)
  endif()
  add_dependencies(trireme_asmjit asmjit_archive)
  target_link_options(trireme_asmjit INTERFACE LINKER:--exclude-libs,${asmjit_archive_name})
  target_link_libraries(trireme_asmjit INTERFACE ${asmjit_archive} pthread rt)
endif()

# Puts asmjit's objects into our static library, so that who links libtrireme.a needs no second archive.
function(trireme_bundle_asmjit library)
  target_include_directories(${library} SYSTEM PRIVATE
                             $<TARGET_PROPERTY:trireme_asmjit,INTERFACE_SYSTEM_INCLUDE_DIRECTORIES>)
  if(NOT asmjit_archive)
    target_link_libraries(${library} PUBLIC asmjit::asmjit)
    return()
  endif()
  add_dependencies(${library} asmjit_archive)
  set(script ${CMAKE_BINARY_DIR}/asmjit/bundle_${library}.mri)
  file(GENERATE OUTPUT ${script}
       CONTENT "create $<TARGET_FILE:${library}>\naddlib $<TARGET_FILE:${library}>\naddlib ${asmjit_archive}\nsave\nend\n")
  add_custom_command(TARGET ${library} POST_BUILD COMMAND ${CMAKE_AR} -M < ${script}
                     COMMAND ${CMAKE_RANLIB} $<TARGET_FILE:${library}>)
  target_link_libraries(${library} PUBLIC rt)
endfunction()
