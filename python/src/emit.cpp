#include "emit.hpp"

#include <memory>

#include "operator.hpp"
#include "options.hpp"
#include "plan_type.hpp"

namespace trireme::python {
namespace {

class EmitOptions : NamedOptions {
 public:
  trireme_emit_options raw = {};

  bool read(PyObject* types, PyObject* constants, PyObject* absent) {
    raw.struct_size = sizeof raw;
    if (!read_named(types, constants, absent)) return false;
    give_named(raw);
    return true;
  }
};

}  // namespace

PyObject* emit(PyObject*, PyObject* arguments) {
  PyObject *op, *types, *constants, *absent;
  EmitOptions options;
  long long rows = 0, columns = 0;
  if (!PyArg_ParseTuple(arguments, "OszLLO!O!Oz", &op, &options.raw.target, &options.raw.arch, &rows, &columns,
                        &PyDict_Type, &types, &PyDict_Type, &constants, &absent, &options.raw.config))
    return nullptr;
  if (!is_operator(op)) return raise_type("kernels are made of an operator");
  if (!options.read(types, constants, absent)) return nullptr;
  options.raw.rows = rows, options.raw.columns = columns;
  trireme_emission* made = nullptr;
  PyThreadState* state = PyEval_SaveThread();
  trireme_status status = trireme_emit(operator_of(op).program, &options.raw, &made);
  PyEval_RestoreThread(state);
  if (status != TRIREME_OK) return raise(status);
  std::unique_ptr<trireme_emission, decltype(&trireme_emission_destroy)> kept(made, trireme_emission_destroy);
  trireme_emission_view view = {};
  view.struct_size = sizeof view;
  if (status = trireme_emission_get(made, &view); status != TRIREME_OK) return raise(status);
  return Py_BuildValue("(y#sssss)", static_cast<const char*>(view.bytes), static_cast<Py_ssize_t>(view.byte_count),
                       view.arch, view.config, view.description, view.manifest, view.c_constants);
}

}  // namespace trireme::python
