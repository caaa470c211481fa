# fmt is compiled into our library once (src/support/fmt.cpp); where its version is not the one that file knows, it is
# used header-only. Target trireme_fmt carries the choice.
file(WRITE ${CMAKE_BINARY_DIR}/fmt_once.cpp
     "#include <fmt/format.h>\nint main() { return fmt::format(\"{} {:.3f} {}\", 1, 2.0, 3.0f).empty(); }\n")
try_compile(TRIREME_FMT_ONCE ${CMAKE_BINARY_DIR}/fmt_once
            SOURCES ${CMAKE_BINARY_DIR}/fmt_once.cpp ${CMAKE_SOURCE_DIR}/src/support/fmt.cpp CXX_STANDARD 20)
add_library(trireme_fmt INTERFACE)
if(NOT TRIREME_FMT_ONCE)
  target_compile_definitions(trireme_fmt INTERFACE FMT_HEADER_ONLY)
endif()
