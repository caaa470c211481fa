// trireme._core.Plan: the library's plans, every option of theirs.
#pragma once
#include "operator.hpp"

namespace trireme::python {

bool add_plan_type(PyObject* module);

bool is_operator(PyObject* object);
Operator& operator_of(PyObject* object);

}  // namespace trireme::python
