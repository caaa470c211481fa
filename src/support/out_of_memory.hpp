// Calls that promise a Result keep that promise where memory runs out: what the standard library throws then becomes
// Code::OutOfMemory here, at the public calls, and nowhere else. In between the exception passes through, and
// destructors put things right; no code of the pure folders throws or catches (tests/pure_folders.sh), so that they
// also build without exceptions, where running out of memory ends the process.
#pragma once
#include <utility>

#include "trireme/result.hpp"

#if defined(__cpp_exceptions)
#include <new>
#include <stdexcept>
#endif

namespace trireme {

inline Error out_of_memory() { return {Code::OutOfMemory, "out of memory"}; }  // short enough to need none itself

template <typename Body>
auto or_out_of_memory(Body&& body) -> decltype(body()) {
#if defined(__cpp_exceptions)
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::length_error&) {  // more than any memory holds
    return out_of_memory();
  }
#else
  return body();
#endif
}

}  // namespace trireme
