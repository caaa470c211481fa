// Digests of arrays by blocks of rows, and receipts.
#pragma once
#include "python.hpp"

namespace trireme::python {

PyObject* block_digests(PyObject*, PyObject* arguments);
// Receipts are their texts here.
PyObject* receipt_make(PyObject*, PyObject* arguments);
PyObject* receipt_parse(PyObject*, PyObject* arguments);
PyObject* receipt_sign(PyObject*, PyObject* arguments);
PyObject* receipt_check(PyObject*, PyObject* arguments);

}  // namespace trireme::python
