# Of a tuned table what a compiler looks up: each class once, its schedules below it. How fast they were, and the problems they
# were measured on, are three fifths of its text.
function(trireme_schedules_by_class variable)
  string(REGEX MATCHALL "[^\n]+" lines "${${variable}}")
  set(text "")
  set(class "")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^[0-9.]+ [0-9.]+  (.*[^ ])  (simd|threads|model) (.*[^ ])  # ")
      continue()
    endif()
    if(NOT CMAKE_MATCH_1 STREQUAL class)
      set(class "${CMAKE_MATCH_1}")
      string(APPEND text "${class}\n")
    endif()
    string(APPEND text "  ${CMAKE_MATCH_2} ${CMAKE_MATCH_3}\n")
  endforeach()
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# trireme_embed(OUTPUT HEADER TYPE FUNCTION FILE...): a source file that defines FUNCTION, declared in HEADER, which gives a
# table of {name, text}, one TYPE for each FILE.
function(trireme_embed output header type function)
  set(entries "")
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} text)
    if(file MATCHES "\\.txt$")
      trireme_schedules_by_class(text)
    endif()
    string(APPEND entries "    {\"${name}\", R\"text(${text})text\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT "#include \"${header}\"

namespace trireme {
static const ${type} table[] = {
${entries}};
std::span<const ${type}> ${function}() { return table; }
}  // namespace trireme
")
endfunction()

# The operators, and in trireme/ops.hpp, in the folder TRIREME_GENERATED_HEADERS, a function for each.
file(GLOB op_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/ops/*.row)
set(TRIREME_EMBEDDED_OPS ${CMAKE_BINARY_DIR}/embedded_ops.cpp)
trireme_embed(${TRIREME_EMBEDDED_OPS} plan/ops.hpp OperatorText operator_texts ${op_files})
set(operator_functions "")
set(operator_list "")
foreach(file ${op_files})
  get_filename_component(name ${file} NAME_WE)
  string(APPEND operator_functions "
inline RowProgram ${name}() {
  static const RowProgram program = RowProgram::named(\"${name}\").value();
  return program;
}
")
  string(APPEND operator_list "&${name}, ")
endforeach()
set(TRIREME_GENERATED_HEADERS ${CMAKE_BINARY_DIR}/generated)
configure_file(${CMAKE_SOURCE_DIR}/cmake/ops.hpp.in ${TRIREME_GENERATED_HEADERS}/trireme/ops.hpp @ONLY)

# The tables of tuned schedules.
file(GLOB tuned_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tuned/*.txt)
set(TRIREME_EMBEDDED_TABLES ${CMAKE_BINARY_DIR}/embedded_tables.cpp)
trireme_embed(${TRIREME_EMBEDDED_TABLES} schedule/tuned.hpp TunedTable tuned_tables ${tuned_files})
