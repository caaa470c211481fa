// Kernels as text and bytes.
#pragma once
#include "python.hpp"

namespace trireme::python {

// (operator, target, arch, rows, columns, types, constants, absent, config)
//   -> (bytes, arch, config, description, manifest, constants of C)
PyObject* emit(PyObject* module, PyObject* arguments);

}  // namespace trireme::python
