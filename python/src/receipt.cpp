#include "receipt.hpp"

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "errors.hpp"
#include "operator.hpp"
#include "options.hpp"
#include "plan_type.hpp"
#include "types.hpp"

namespace trireme::python {
namespace {

// An array that lies in the host's memory. `said`: its type, -1 where it says so itself. False with a Python error.
bool load_host(Array& array, PyObject* object, const char* what, std::int32_t said) {
  if (!array.load(object, what, false)) return false;
  if (array.where.cuda)
    return raise_invalid("%s lies on a GPU, and digests are taken on the host: give a copy there", what);
  if (said >= 0 && may_be(array.type, said)) array.take_type(said);
  if (array.type == Raw16) return raise_type("%s: uint16 may be bf16; say type=\"bf16\"", what);
  if (said >= 0 && array.type != said)
    return raise_type("%s: holds %s, not %s", what, type_name(array.type), type_name(said));
  return true;
}

using Receipt = std::unique_ptr<trireme_receipt, decltype(&trireme_receipt_destroy)>;

Receipt parsed(const char* text, Py_ssize_t bytes) {
  trireme_receipt* made = nullptr;
  if (!fine(trireme_receipt_parse(text, static_cast<std::size_t>(bytes), &made))) made = nullptr;
  return Receipt(made, trireme_receipt_destroy);
}

// (canonical form, what a signature covers)
PyObject* printed(const Receipt& receipt) {
  const char *json = nullptr, *signed_form = nullptr;
  if (!receipt || !fine(trireme_receipt_print(receipt.get(), &json, &signed_form))) return nullptr;
  return Py_BuildValue("(ss)", json, signed_form);
}

class Named : NamedOptions {
 public:
  std::vector<trireme_named_view> views;
  std::vector<trireme_named_value> values;

  // False with a Python error. `types`: of those whose type is said, by name.
  bool read(PyObject* arrays, PyObject* types, PyObject* constants) {
    return each(arrays,
                [&](const char* name, PyObject* object) {
                  PyObject* type = PyDict_GetItemString(types, name);
                  const std::int32_t said = type ? type_from(type, name) : -1;
                  if (type && said < 0) return false;
                  Array& array = arrays_.emplace_back();
                  if (!load_host(array, object, name, said)) return false;
                  lent_.push_back(array.view());
                  views.push_back({name, &lent_.back()});
                  return true;
                }) &&
           each(constants, [&](const char* name, PyObject* value) {
             values.push_back({name, PyFloat_AsDouble(value)});
             return !PyErr_Occurred();
           });
  }

 private:
  std::deque<Array> arrays_;
  std::deque<trireme_view> lent_;
};

template <typename Call>
trireme_status without_lock(Call&& call) {
  PyThreadState* state = PyEval_SaveThread();
  const trireme_status status = call();
  PyEval_RestoreThread(state);
  return status;
}

}  // namespace

PyObject* receipt_make(PyObject*, PyObject* arguments) {
  PyObject *op, *arrays, *types, *constants;
  trireme_receipt_options options = {};
  options.struct_size = sizeof options;
  if (!PyArg_ParseTuple(arguments, "OO!O!O!is", &op, &PyDict_Type, &arrays, &PyDict_Type, &types, &PyDict_Type,
                        &constants, &options.axes, &options.hash))
    return nullptr;
  if (!is_operator(op)) return raise_type("a receipt is one of an operator");
  Named given;
  if (!given.read(arrays, types, constants)) return nullptr;
  options.constants = given.values.data(), options.constant_count = given.values.size();
  trireme_receipt* made = nullptr;
  const trireme_program* program = operator_of(op).program;
  const trireme_status status = without_lock(
      [&] { return trireme_receipt_make(program, given.views.data(), given.views.size(), &options, &made); });
  if (status != TRIREME_OK) return raise(status);
  return printed(Receipt(made, trireme_receipt_destroy));
}

PyObject* receipt_parse(PyObject*, PyObject* arguments) {
  const char* text = nullptr;
  Py_ssize_t bytes = 0;
  if (!PyArg_ParseTuple(arguments, "s#", &text, &bytes)) return nullptr;
  return printed(parsed(text, bytes));
}

PyObject* receipt_sign(PyObject*, PyObject* arguments) {
  const char *text = nullptr, *key = nullptr, *value = nullptr;
  Py_ssize_t bytes = 0;
  if (!PyArg_ParseTuple(arguments, "s#ss", &text, &bytes, &key, &value)) return nullptr;
  const Receipt receipt = parsed(text, bytes);
  trireme_receipt* made = nullptr;
  if (!receipt || !fine(trireme_receipt_sign(receipt.get(), key, value, &made))) return nullptr;
  return printed(Receipt(made, trireme_receipt_destroy));
}

PyObject* receipt_check(PyObject*, PyObject* arguments) {
  PyObject *arrays, *types;
  const char* text = nullptr;
  Py_ssize_t bytes = 0;
  long long first = 0, last = 0;
  trireme_receipt_check_options options = {};
  options.struct_size = sizeof options;
  if (!PyArg_ParseTuple(arguments, "s#O!O!sLLi", &text, &bytes, &PyDict_Type, &arrays, &PyDict_Type, &types,
                        &options.device, &first, &last, &options.threads))
    return nullptr;
  options.first_row = first, options.last_row = last;
  const Receipt receipt = parsed(text, bytes);
  Named given;
  Ref none(PyDict_New());
  if (!receipt || !none || !given.read(arrays, types, none.get())) return nullptr;
  trireme_receipt_report* made = nullptr;
  const trireme_status status = without_lock(
      [&] { return trireme_receipt_check(receipt.get(), given.views.data(), given.views.size(), &options, &made); });
  if (status != TRIREME_OK) return raise(status);
  const std::unique_ptr<trireme_receipt_report, decltype(&trireme_receipt_report_destroy)> report(
      made, trireme_receipt_report_destroy);
  std::int32_t passed = 0;
  const char* json = nullptr;
  if (!fine(trireme_receipt_report_get(made, &passed, &json))) return nullptr;
  return Py_BuildValue("(Os)", passed ? Py_True : Py_False, json);
}

PyObject* block_digests(PyObject*, PyObject* arguments) {
  PyObject *object, *type;
  const char* hash = nullptr;
  int axes = 1;
  if (!PyArg_ParseTuple(arguments, "OiOs", &object, &axes, &type, &hash)) return nullptr;
  const std::int32_t said = type == Py_None ? -1 : type_from(type, "type");
  if (type != Py_None && said < 0) return nullptr;
  Array array;
  if (!load_host(array, object, "array", said)) return nullptr;
  const trireme_view view = array.view();
  std::string lines(TRIREME_BLOCK_DIGESTS_BYTES, 0);
  PyThreadState* state = PyEval_SaveThread();
  const trireme_status status = trireme_block_digests(&view, axes, hash, lines.data(), lines.size());
  PyEval_RestoreThread(state);
  if (status != TRIREME_OK) return raise(status);
  long long rows = 1, columns = 1;
  for (int k = 0; k < array.rank; ++k) (array.rank - k > axes ? rows : columns) *= array.shape[k];
  return Py_BuildValue("(LLLss)", rows, columns, static_cast<long long>(trireme_block_rows(rows)),
                       type_name(array.type), lines.c_str());
}

}  // namespace trireme::python
