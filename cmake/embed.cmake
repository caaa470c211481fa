# trireme_embed(OUTPUT HEADER TYPE FUNCTION DEFINITIONS ENTRIES): a source file that defines FUNCTION, declared in HEADER, which
# gives a table of TYPE with these ENTRIES, made of these DEFINITIONS.
function(trireme_embed output header type function definitions entries)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT "#include \"${header}\"

namespace trireme {
${definitions}static const ${type} table[] = {
${entries}};
std::span<const ${type}> ${function}() { return table; }
}  // namespace trireme
")
endfunction()

# The operators, and in trireme/ops.hpp, in the folder TRIREME_GENERATED_HEADERS, a function for each.
file(GLOB op_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/ops/*.row)
set(TRIREME_EMBEDDED_OPS ${CMAKE_BINARY_DIR}/embedded_ops.cpp)
set(operator_texts "")
set(operator_functions "")
set(operator_list "")
foreach(file ${op_files})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  string(APPEND operator_texts "    {\"${name}\", R\"text(${text})text\"},\n")
  string(APPEND operator_functions "
inline RowProgram ${name}() {
  static const RowProgram program = RowProgram::named(\"${name}\").value();
  return program;
}
")
  string(APPEND operator_list "&${name}, ")
endforeach()
trireme_embed(${TRIREME_EMBEDDED_OPS} plan/ops.hpp OperatorText operator_texts "" "${operator_texts}")
set(TRIREME_GENERATED_HEADERS ${CMAKE_BINARY_DIR}/generated)
configure_file(${CMAKE_SOURCE_DIR}/cmake/ops.hpp.in ${TRIREME_GENERATED_HEADERS}/trireme/ops.hpp @ONLY)

# Of a tuned table what a compiler looks up, its classes each with its schedules, as schedule/tuned.hpp says: each word once, and
# lines of the words' numbers. How fast they were, and what they were measured on, are three fifths of its text.
function(trireme_words_and_lines file words lines)
  set(known "")
  set(numbers "")
  set(class "")
  file(STRINGS ${file} measured)
  foreach(line IN LISTS measured)
    if(NOT line MATCHES "^[0-9.]+ [0-9.]+  (.*[^ ])  (simd|threads|model) (.*[^ ])  # ")
      continue()
    endif()
    set(parts "${CMAKE_MATCH_2} ${CMAKE_MATCH_3}")
    if(NOT CMAKE_MATCH_1 STREQUAL class)
      set(class "${CMAKE_MATCH_1}")
      string(PREPEND parts "\n${class}\n")
    endif()
    string(REGEX MATCHALL "[^ \n]+|\n" parts "${parts}\n")
    foreach(word IN LISTS parts)
      set(number 0)
      if(NOT word STREQUAL "\n")
        if(NOT word IN_LIST known)
          list(APPEND known ${word})
        endif()
        list(FIND known ${word} number)
        math(EXPR number "${number} + 1")
      endif()
      while(number GREATER 254)
        string(APPEND numbers "255,")
        math(EXPR number "${number} - 255")
      endwhile()
      string(APPEND numbers "${number},")
    endforeach()
  endforeach()
  string(REPLACE ";" " " known "${known}")
  set(${words} "${known}" PARENT_SCOPE)
  set(${lines} "${numbers}0" PARENT_SCOPE)
endfunction()

# The tables of tuned schedules.
file(GLOB tuned_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tuned/*.txt)
set(TRIREME_EMBEDDED_TABLES ${CMAKE_BINARY_DIR}/embedded_tables.cpp)
set(tuned_lines "")
set(tuned_tables "")
foreach(file ${tuned_files})
  get_filename_component(name ${file} NAME_WE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  trireme_words_and_lines(${file} words lines)
  string(APPEND tuned_lines "static const std::uint8_t lines_of_${name}[] = {${lines}};\n")
  string(APPEND tuned_tables "    {\"${name}\", \"${words}\", lines_of_${name}},\n")
endforeach()
trireme_embed(${TRIREME_EMBEDDED_TABLES} schedule/tuned.hpp TunedTable tuned_tables "${tuned_lines}" "${tuned_tables}")

# The records of functions: every `Function NAME()` that begins a line of src/math/records, declared and called.
file(GLOB record_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/math/records/*.cpp)
set(record_declarations "")
set(record_calls "")
foreach(file ${record_files})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(STRINGS ${file} heads REGEX "^Function [a-z0-9_]+\\(\\) {")
  if(NOT heads)
    message(FATAL_ERROR "${file} has no line `Function NAME() {`")
  endif()
  foreach(head ${heads})
    string(REGEX REPLACE "^Function ([a-z0-9_]+).*" "\\1" name "${head}")
    string(APPEND record_declarations "Function ${name}();\n")
    string(APPEND record_calls "records::${name}(), ")
  endforeach()
endforeach()
set(TRIREME_EMBEDDED_FUNCTIONS ${CMAKE_BINARY_DIR}/embedded_functions.cpp)
file(CONFIGURE OUTPUT ${TRIREME_EMBEDDED_FUNCTIONS} @ONLY CONTENT "#include \"math/functions.hpp\"

namespace trireme {
namespace records {
${record_declarations}}
std::vector<Function> function_records() { return {${record_calls}}; }
}  // namespace trireme
")
list(APPEND TRIREME_EMBEDDED_TABLES ${TRIREME_EMBEDDED_FUNCTIONS})
