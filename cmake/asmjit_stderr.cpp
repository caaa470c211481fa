// The stderr that asmjit sees inside our libraries, see asmjit.cmake. It uses it only to say why it aborts.
#include <cstdio>

extern "C" {
__attribute__((visibility("hidden"))) FILE* trireme_asmjit_stderr = stderr;
}
