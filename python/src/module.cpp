// trireme._core: operators that can be called, plans, devices and digests. The Python around it is in trireme/.
#include <cmath>
#include <cstring>

#include "emit.hpp"
#include "errors.hpp"
#include "operator.hpp"
#include "options.hpp"
#include "plan_type.hpp"
#include "receipt.hpp"
#include "torch_call.hpp"

namespace trireme::python {
namespace {

struct OperatorObject {
  PyObject head;
  Operator* op;
};
Operator& operator_in(PyObject* self) { return *reinterpret_cast<OperatorObject*>(self)->op; }

PyObject* wrap(PyTypeObject* type, Operator* op) {
  if (!op) return nullptr;
  auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  PyObject* self = allocate(type, 0);
  if (!self) {
    delete op;
    return nullptr;
  }
  reinterpret_cast<OperatorObject*>(self)->op = op;
  return self;
}

PyObject* operator_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  const char *text = nullptr, *named = nullptr;
  Py_ssize_t bytes = 0;
  PyObject *forward = nullptr, *gradients = nullptr;
  static const char* names[] = {"text", "named", "backward_of", "gradients", nullptr};
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|z#zOO", const_cast<char**>(names), &text, &bytes, &named,
                                   &forward, &gradients))
    return nullptr;
  if (text) return wrap(type, Operator::parse({text, static_cast<std::size_t>(bytes)}));
  if (named) return wrap(type, Operator::named(named));
  if (forward && is_operator(forward)) return wrap(type, operator_in(forward).differentiate(gradients));
  return raise_type("an operator is made of text, a name, or another operator");
}

void operator_free(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<OperatorObject*>(self)->op;
  auto release = reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free));
  release(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyObject* operator_call(PyObject* self, PyObject* arguments, PyObject* keywords) {
  return call(operator_in(self), arguments, keywords);
}

PyObject* get_text(PyObject* self, void*) { return PyUnicode_FromString(operator_in(self).text.c_str()); }
PyObject* get_name(PyObject* self, void*) { return PyUnicode_FromString(operator_in(self).name.c_str()); }
PyObject* get_plan_count(PyObject* self, void*) { return PyLong_FromSize_t(operator_in(self).plan_count()); }

// (name, spread, optional, default or None), ...
PyObject* list_of(const std::vector<Parameter>& parameters) {
  Ref list(PyList_New(0));
  for (const Parameter& each : parameters) {
    Ref fallback =
        each.optional && !std::isnan(each.fallback) ? Ref(PyFloat_FromDouble(each.fallback)) : Ref::to(Py_None);
    Ref item(Py_BuildValue("(OsOO)", each.name.get(), each.spread.c_str(), each.optional ? Py_True : Py_False,
                           fallback.get()));
    if (!list || !item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.give();
}
PyObject* get_operands(PyObject* self, void*) { return list_of(operator_in(self).operands); }
PyObject* get_constants(PyObject* self, void*) { return list_of(operator_in(self).constants); }
PyObject* get_results(PyObject* self, void*) { return list_of(operator_in(self).results); }

PyObject* set_default_results(PyObject* self, PyObject* names) {
  Operator& op = operator_in(self);
  std::uint32_t wanted = 0;
  for (std::size_t k = 0; k < op.results.size(); ++k) {
    int held = PySequence_Contains(names, op.results[k].name.get());
    if (held < 0) return nullptr;
    if (held) wanted |= 1u << k;
  }
  if (!wanted) return raise_invalid("%s: a call gives back at least one result", op.name.c_str());
  op.default_results = wanted;
  Py_RETURN_NONE;
}

PyGetSetDef operator_fields[] = {
    {"name", get_name, nullptr, "The program's name.", nullptr},
    {"text", get_text, nullptr, "The program, printed.", nullptr},
    {"operands", get_operands, nullptr, "(name, spread, optional, default) of each.", nullptr},
    {"constants", get_constants, nullptr, "(name, spread, optional, default) of each.", nullptr},
    {"results", get_results, nullptr, "(name, spread, False, None) of each.", nullptr},
    {"cached_plans", get_plan_count, nullptr, "Plans kept for calls; at most 256.", nullptr},
    {},
};
PyObject* quick(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  return quick_call(operator_in(self), given, count);
}
PyObject* run_placed(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  return placed_call(operator_in(self), given, count);
}
PyObject* quick_op(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  return quick_overload(operator_in(self), given, count);
}

PyMethodDef operator_methods[] = {
    {"_quick", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(guarded<quick>)), METH_FASTCALL,
     "All results where memory may be touched at once; None where a derivative is wanted too, else NotImplemented."},
    {"_run", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(guarded<run_placed>)), METH_FASTCALL,
     "All results, of arguments in their places; None for those that are not wanted."},
    {"_quick_overload", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(guarded<quick_op>)), METH_FASTCALL,
     "The same, called as torch.ops.trireme's overload is."},
    {"_set_default_results", guarded<set_default_results>, METH_O, "What a call gives back unless told."},
    {},
};
PyType_Slot operator_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(guarded<operator_new>)},
    {Py_tp_dealloc, reinterpret_cast<void*>(operator_free)},
    {Py_tp_call, reinterpret_cast<void*>(guarded<operator_call>)},
    {Py_tp_getset, operator_fields},
    {Py_tp_methods, operator_methods},
    {Py_tp_doc, const_cast<char*>("A row program that can be called.")},
    {},
};
PyType_Spec operator_spec = {"trireme._core.Operator", sizeof(OperatorObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, operator_slots};
PyObject* operator_type = nullptr;

PyObject* operator_texts(PyObject*, PyObject*) {
  Ref texts(PyDict_New());
  for (std::size_t k = 0; texts && k < trireme_operator_count(); ++k) {
    Ref text(PyUnicode_FromString(trireme_operator_text(k)));
    if (!text || PyDict_SetItemString(texts.get(), trireme_operator_name(k), text.get()) < 0) return nullptr;
  }
  return texts.give();
}

PyObject* devices(PyObject*, PyObject*) {
  Ref found(PyDict_New());
  for (std::size_t k = 0; found && k < trireme_device_count(); ++k) {
    Ref missing(PyUnicode_FromString(trireme_device_missing(k)));
    if (!missing || PyDict_SetItemString(found.get(), trireme_device_name(k), missing.get()) < 0) return nullptr;
  }
  return found.give();
}

PyObject* digest(PyObject*, PyObject* arguments) {
  const char *line = nullptr, *text = nullptr, *device = nullptr;
  int threads = 0;
  if (!PyArg_ParseTuple(arguments, "szsi", &line, &text, &device, &threads)) return nullptr;
  char found[TRIREME_DIGEST_BYTES];
  PyThreadState* state = PyEval_SaveThread();
  trireme_status status = trireme_digest(line, text, device, threads, found);
  PyEval_RestoreThread(state);
  return status == TRIREME_OK ? PyUnicode_FromString(found) : raise(status);
}

PyObject* layout(PyObject*, PyObject* object) {
  Array array;
  if (!array.load(object, "array", false)) return nullptr;
  Ref shape(PyTuple_New(array.rank)), strides(PyTuple_New(array.rank));
  std::int64_t step = 1;
  if (array.contiguous)
    for (int k = array.rank; k-- > 0;) array.strides[k] = step, step *= array.shape[k];
  for (int k = 0; shape && strides && k < array.rank; ++k) {
    PyTuple_SetItem(shape.get(), k, PyLong_FromLongLong(array.shape[k]));
    PyTuple_SetItem(strides.get(), k, PyLong_FromLongLong(array.strides[k]));
  }
  if (!shape || !strides) return nullptr;
  std::string device = array.where.cuda ? "cuda:" + std::to_string(array.where.index) : "cpu";
  return Py_BuildValue("(OOssK)", shape.get(), strides.get(), type_name(array.type), device.c_str(),
                       reinterpret_cast<unsigned long long>(array.data));
}

// [(program's text, [(reduction, (name, ...), combine program's text), ...], [group, ...]), ...]
PyObject* split(PyObject*, PyObject* op) {
  if (!is_operator(op)) return raise_type("an operator is split");
  struct Owner {
    trireme_split* split = nullptr;
    ~Owner() { trireme_split_destroy(split); }
  } owner;
  std::size_t phases = 0;
  if (!fine(trireme_program_split(operator_in(op).program, &owner.split))) return nullptr;
  if (!fine(trireme_split_phase_count(owner.split, &phases))) return nullptr;
  auto text_of = [](trireme_program* program) {
    const char* text = nullptr;
    Ref made(fine(trireme_program_print(program, &text)) ? PyUnicode_FromString(text) : nullptr);
    trireme_program_destroy(program);
    return made;
  };
  Ref all(PyList_New(0));
  for (std::size_t p = 0; all && p < phases; ++p) {
    trireme_program* program = nullptr;
    std::size_t count = 0;
    if (!fine(trireme_split_phase(owner.split, p, &program))) return nullptr;
    Ref text = text_of(program), exchanges(PyList_New(0));
    if (!text || !exchanges || !fine(trireme_split_exchange_count(owner.split, p, &count))) return nullptr;
    for (std::size_t k = 0; k < count; ++k) {
      trireme_exchange from = {};
      from.struct_size = sizeof from;
      if (!fine(trireme_split_exchange(owner.split, p, k, &from))) return nullptr;
      if (!fine(trireme_split_combine(owner.split, p, k, &program))) return nullptr;
      Ref combine = text_of(program);
      if (!combine) return nullptr;
      Ref names(from.second ? Py_BuildValue("(ss)", from.first, from.second) : Py_BuildValue("(s)", from.first));
      Ref each(names ? Py_BuildValue("(sOO)", from.reduction, names.get(), combine.get()) : nullptr);
      if (!each || PyList_Append(exchanges.get(), each.get()) < 0) return nullptr;
    }
    Ref groups(PyList_New(0));
    if (!groups || !fine(trireme_split_group_count(owner.split, p, &count))) return nullptr;
    for (std::size_t k = 0; k < count; ++k) {
      const char* group = nullptr;
      if (!fine(trireme_split_group(owner.split, p, k, &group))) return nullptr;
      Ref each(PyUnicode_FromString(group));
      if (!each || PyList_Append(groups.get(), each.get()) < 0) return nullptr;
    }
    Ref phase(Py_BuildValue("(OOO)", text.get(), exchanges.get(), groups.get()));
    if (!phase || PyList_Append(all.get(), phase.get()) < 0) return nullptr;
  }
  return all.give();
}

PyObject* text_of(trireme_program* made) {
  const char* text = nullptr;
  Ref printed(fine(trireme_program_print(made, &text)) ? PyUnicode_FromString(text) : nullptr);
  trireme_program_destroy(made);
  return printed.give();
}

PyObject* compose(PyObject*, PyObject* op) {
  if (!is_operator(op)) return raise_type("an operator is composed");
  trireme_program* made = nullptr;
  return fine(trireme_program_compose(operator_in(op).program, &made)) ? text_of(made) : nullptr;
}

PyObject* without(PyObject*, PyObject* arguments) {
  PyObject *op = nullptr, *names = nullptr;
  if (!PyArg_ParseTuple(arguments, "OO!", &op, &PyTuple_Type, &names)) return nullptr;
  if (!is_operator(op)) return raise_type("an operator has operands that may be absent");
  struct Absent : NamedOptions {
    std::vector<const char*> list;
    bool read(PyObject* said) { return names(said, list); }
  } absent;
  trireme_program* made = nullptr;
  if (!absent.read(names)) return nullptr;
  return fine(trireme_program_without(operator_in(op).program, absent.list.data(), absent.list.size(), &made))
             ? text_of(made)
             : nullptr;
}

PyObject* row_block(PyObject*, PyObject* arguments) {
  long long rows = 0, entries = 0;
  if (!PyArg_ParseTuple(arguments, "LL", &rows, &entries)) return nullptr;
  return PyLong_FromLongLong(trireme_row_block(rows, entries));
}

PyMethodDef functions[] = {
    {"split", guarded<split>, METH_O,
     "[(program, [(reduction, names, combine), ...], [group, ...]), ...] of an operator, as texts."},
    {"compose", guarded<compose>, METH_O, "The composed program of an operator, as text."},
    {"without", guarded<without>, METH_VARARGS,
     "without(operator, names): what a call without these operands computes, as text."},
    {"row_block", guarded<row_block>, METH_VARARGS, "row_block(rows, entries): the contract's rows of a block."},
    {"operator_texts", guarded<operator_texts>, METH_NOARGS, "name -> text of the operators that come with Trireme."},
    {"devices", guarded<devices>, METH_NOARGS, "name -> why it is missing here, or ''."},
    {"digest", guarded<digest>, METH_VARARGS, "digest(line, text or None, device, threads)"},
    {"block_digests", guarded<block_digests>, METH_VARARGS,
     "(rows, columns, rows of a block, type, digests a line each): (array, axes, type or None, hash)"},
    {"receipt_make", guarded<receipt_make>, METH_VARARGS, "(operator, arrays, types, constants, axes, hash)"},
    {"receipt_parse", guarded<receipt_parse>, METH_VARARGS, "(canonical form, what a signature covers) of a text."},
    {"receipt_sign", guarded<receipt_sign>, METH_VARARGS, "The same with a signature: (text, key, value)"},
    {"receipt_check", guarded<receipt_check>, METH_VARARGS,
     "(passed, report as JSON): (text, arrays, types, device, first row, last row, threads)"},
    {"emit", guarded<emit>, METH_VARARGS, "Kernels as text or bytes."},
    {"use_torch", guarded<use_torch>, METH_VARARGS, "What calls on torch's tensors ask torch."},
    {"layout", guarded<layout>, METH_O, "(shape, strides, type, device, address) of an array."},
    {},
};

int fill(PyObject* module) {
  if (!add_errors(module) || !add_plan_type(module)) return -1;
  operator_type = PyType_FromSpec(&operator_spec);
  if (!operator_type || PyModule_AddObjectRef(module, "Operator", operator_type) < 0) return -1;
  if (PyModule_AddStringConstant(module, "version", trireme_version()) < 0) return -1;
  return PyModule_AddIntConstant(module, "contract_version", trireme_contract_version());
}

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_core", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

bool is_operator(PyObject* object) { return PyObject_IsInstance(object, operator_type) == 1; }
Operator& operator_of(PyObject* object) { return operator_in(object); }

}  // namespace trireme::python

PyMODINIT_FUNC PyInit__core() {
  PyObject* module = PyModule_Create(&trireme::python::definition);
  if (module && trireme::python::fill(module) < 0) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
