// Calls on torch's tensors that need neither its dispatcher nor its autograd: the operands are plain tensors, no mode,
// transform or tracer has a say, and no derivative is wanted. Others are answered with NotImplemented; calls that are
// such but for the derivative, by quick_call, with None.
#pragma once
#include "operator.hpp"

namespace trireme::python {

// use_torch(Tensor, Parameter, forward_ad, types_dict, is_grad_enabled, watchers, is_wrapped): `watchers` are functions
// of no argument whose result is true where somebody has a say; `is_wrapped` take a tensor.
PyObject* use_torch(PyObject* module, PyObject* arguments);

// (operands, constants, axes, types, wanted, row_block, may_be_wrapped), the first two as lists or tuples.
PyObject* quick_call(Operator& op, PyObject* const* given, Py_ssize_t count);

// The same without the last argument and without a look: the caller knows.
PyObject* placed_call(Operator& op, PyObject* const* given, Py_ssize_t count);

// (*operands, *constants, axes, types, wanted = -1, row_block = 0)
PyObject* quick_overload(Operator& op, PyObject* const* given, Py_ssize_t count);

}  // namespace trireme::python
