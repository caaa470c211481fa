# Target trireme_asmjit: the x86 encoder, taken from the system package.
find_package(asmjit REQUIRED)
add_library(trireme_asmjit INTERFACE)
target_link_libraries(trireme_asmjit INTERFACE asmjit::asmjit)
