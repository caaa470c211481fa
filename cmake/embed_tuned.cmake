# Embeds every tuned/*.txt as text: TRIREME_EMBEDDED_TABLES is a source file that defines the tables declared in
# schedule/tuned.hpp.
file(GLOB tuned_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tuned/*.txt)
set(TRIREME_EMBEDDED_TABLES ${CMAKE_BINARY_DIR}/embedded_tables.cpp)
set(entries "")
foreach(file ${tuned_files})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND entries "    {\"${name}\", R\"table(${text})table\"},\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endforeach()
file(CONFIGURE OUTPUT ${TRIREME_EMBEDDED_TABLES} @ONLY CONTENT "#include \"schedule/tuned.hpp\"

namespace trireme {
static const TunedTable tables[] = {
${entries}};
std::span<const TunedTable> tuned_tables() { return tables; }
}  // namespace trireme
")
