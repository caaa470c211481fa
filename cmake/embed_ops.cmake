# Embeds every ops/*.row as text: TRIREME_EMBEDDED_OPS is a source file that defines the table declared in plan/ops.hpp,
# and trireme/ops.hpp, in the folder TRIREME_GENERATED_HEADERS, has a function for each.
file(GLOB op_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/ops/*.row)
set(TRIREME_EMBEDDED_OPS ${CMAKE_BINARY_DIR}/embedded_ops.cpp)
set(entries "")
set(operator_functions "")
set(operator_list "")
set(TRIREME_GENERATED_HEADERS ${CMAKE_BINARY_DIR}/generated)
foreach(file ${op_files})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND entries "    {\"${name}\", R\"row(${text})row\"},\n")
  string(APPEND operator_functions "
inline RowProgram ${name}() {
  static const RowProgram program = RowProgram::named(\"${name}\").value();
  return program;
}
")
  string(APPEND operator_list "&${name}, ")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endforeach()
file(CONFIGURE OUTPUT ${TRIREME_EMBEDDED_OPS} @ONLY CONTENT "#include \"plan/ops.hpp\"

namespace trireme {
static const OperatorText table[] = {
${entries}};
std::span<const OperatorText> operator_texts() { return table; }
}  // namespace trireme
")
configure_file(${CMAKE_SOURCE_DIR}/cmake/ops.hpp.in ${TRIREME_GENERATED_HEADERS}/trireme/ops.hpp @ONLY)
