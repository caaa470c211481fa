// The arguments of a Python call, told apart.
#pragma once
#include "operator.hpp"

namespace trireme::python {

struct Arguments {
  Operator& op;
  PyObject *operands[max_arrays] = {},
           *constants[max_constants] = {};  // borrowed, as all objects here; null: not given
  PyObject *out = nullptr, *stream = nullptr, *workspace = nullptr;
  std::uint32_t wanted;  // results, a bit each
  std::int32_t axes = 1, threads = 0, row_block = 0;
  std::int32_t types[max_arrays] = {};  // what `types` says of operands, then of results: a type plus 1, or 0
  std::string device;

  explicit Arguments(Operator& op) : op(op), wanted(op.default_results) {}
  bool read(PyObject* positional, PyObject* keywords);  // false with a Python error
  void read(const Placed& placed);
  bool read_types(PyObject* said);

  int result_named(PyObject* name) const;        // -1 with a Python error
  const Parameter& array(std::size_t k) const {  // operands, then results
    return k < op.operands.size() ? op.operands[k] : op.results[k - op.operands.size()];
  }

 private:
  bool take_keyword(PyObject* name, PyObject* value);
  bool take_option(int option, PyObject* value);
  bool read_integer(const char* name, PyObject* said, long least, std::int32_t& value) const;
  bool read_results(PyObject* said);
};

}  // namespace trireme::python
