// The exceptions, which carry the library's messages.
#pragma once
#include "python.hpp"
#include "trireme.h"

namespace trireme::python {

bool add_errors(PyObject* module);

// Raises what the thread's last call said; returns null for `return raise(status)`.
PyObject* raise(trireme_status status);
// Of our own: InvalidArgument and WrongType (a TypeError too).
PyObject* raise_invalid(const char* format, ...);
PyObject* raise_type(const char* format, ...);

inline bool fine(trireme_status status) {
  if (status == TRIREME_OK) return true;
  raise(status);
  return false;
}

}  // namespace trireme::python
