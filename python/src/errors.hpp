// The exceptions, which carry the library's messages.
#pragma once
#include <new>

#include "python.hpp"
#include "trireme.h"

namespace trireme::python {

bool add_errors(PyObject* module);

// Raises what the thread's last call said; returns null for `return raise(status)`.
PyObject* raise(trireme_status status);
// Of our own: InvalidArgument, InternalError and WrongType (a TypeError too).
PyObject* raise_invalid(const char* format, ...);
PyObject* raise_internal(const char* format, ...);
PyObject* raise_type(const char* format, ...);

// What Python calls: guarded<plan_run>. No exception of C++ may pass through Python, and where memory runs out there is
// MemoryError.
template <auto function>
struct Guard;
template <typename... Arguments, PyObject* (*function)(Arguments...)>
struct Guard<function> {
  static PyObject* call(Arguments... arguments) {
    try {
      return function(arguments...);
    } catch (const std::bad_alloc&) {
      return PyErr_NoMemory();
    }
  }
};
template <auto function>
inline constexpr auto guarded = &Guard<function>::call;

inline bool fine(trireme_status status) {
  if (status == TRIREME_OK) return true;
  raise(status);
  return false;
}

}  // namespace trireme::python
