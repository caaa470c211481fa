#include "plan_type.hpp"

#include <optional>

#include "allocate.hpp"
#include "errors.hpp"
#include "options.hpp"
#include "types.hpp"

namespace trireme::python {
namespace {

struct PlanObject {
  PyObject head;
  std::shared_ptr<MadePlan>* plan;
  bool cuda;
};
PlanObject& in(PyObject* self) { return *reinterpret_cast<PlanObject*>(self); }

class Options : NamedOptions {
 public:
  trireme_plan_options raw = {};

  bool read(PyObject* shape, PyObject* types, PyObject* constants, PyObject* absent, PyObject* results,
            PyObject* strides, PyObject* in_place, PyObject* accumulate) {
    raw.struct_size = sizeof raw;
    if (!extents(shape, raw.shape, raw.rank)) return false;
    bool fine = read_named(types, constants, absent);
    fine = fine && each(strides, [&](const char* name, PyObject* value) {
             trireme_named_strides made{name, 0, nullptr};
             bool read = extents(value, made.strides, made.rank);
             strides_.push_back(made);
             return read;
           });
    fine = fine && each(in_place, [&](const char* name, PyObject* value) {
             const char* operand = text(value);
             in_place_.push_back({name, operand});
             return operand != nullptr;
           });
    if (!fine || !names(results, results_) || !names(accumulate, accumulate_)) return false;
    give_named(raw);
    raw.strides = strides_.data(), raw.stride_count = strides_.size();
    raw.in_place = in_place_.data(), raw.in_place_count = in_place_.size();
    raw.accumulate = accumulate_.data(), raw.accumulate_count = accumulate_.size();
    if (results != Py_None) raw.results = results_.data(), raw.result_count = results_.size();
    return true;
  }

 private:
  std::vector<trireme_named_strides> strides_;
  std::vector<trireme_in_place> in_place_;
  std::vector<const char*> results_, accumulate_;
};

PyObject* plan_new(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject *op, *shape, *types, *constants, *absent, *results, *strides, *in_place, *accumulate;
  const char* device = nullptr;
  int axes = 1, threads = 0;
  long long row_block = 0;
  if (!PyArg_ParseTuple(arguments, "OsOiO!O!OOO!O!OiL", &op, &device, &shape, &axes, &PyDict_Type, &types, &PyDict_Type,
                        &constants, &absent, &results, &PyDict_Type, &strides, &PyDict_Type, &in_place, &accumulate,
                        &threads, &row_block))
    return nullptr;
  if (!is_operator(op)) return raise_type("a plan is made of an operator");
  Options options;
  if (!options.read(shape, types, constants, absent, results, strides, in_place, accumulate)) return nullptr;
  options.raw.axes = axes;
  options.raw.threads = threads;
  options.raw.row_block = row_block;
  std::shared_ptr<MadePlan> plan = MadePlan::make(device, operator_of(op).program, options.raw);
  if (!plan) return nullptr;
  auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  PyObject* self = allocate(type, 0);
  if (!self) return nullptr;
  in(self).plan = new std::shared_ptr<MadePlan>(std::move(plan));
  in(self).cuda = std::string_view(device).starts_with("cuda");
  return self;
}

void plan_free(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete in(self).plan;
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

// run(arrays: dict, stream: int, workspace: address or 0)
PyObject* plan_run(PyObject* self, PyObject* arguments) {
  PyObject* given = nullptr;
  unsigned long long stream = 0;
  if (!PyArg_ParseTuple(arguments, "O!|K", &PyDict_Type, &given, &stream)) return nullptr;
  MadePlan& plan = **in(self).plan;
  const std::vector<PlanArray>& wanted = plan.arrays();
  std::vector<std::optional<Array>> arrays(wanted.size());
  std::vector<trireme_view> views(wanted.size());
  Array* first = nullptr;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    views[k] = {.struct_size = sizeof(trireme_view), .type = wanted[k].type};
    PyObject* object = PyDict_GetItemString(given, wanted[k].name.c_str());
    if (!object || object == Py_None) continue;
    Array& array = arrays[k].emplace();
    if (!array.load(object, wanted[k].name.c_str(), wanted[k].result)) return nullptr;
    if (may_be(array.type, wanted[k].type)) array.take_type(wanted[k].type);
    if (array.type == Raw16)
      return raise_invalid("%s: the array is %s, the plan was made for %s", wanted[k].name.c_str(),
                           type_name(array.type), type_name(wanted[k].type));
    if (array.where.cuda != in(self).cuda)
      return raise_invalid("%s: the array is on %s, the plan is for %s", wanted[k].name.c_str(),
                           array.where.cuda ? "cuda" : "cpu", in(self).cuda ? "cuda" : "cpu");
    views[k] = array.view();
    if (!first) first = &array;
  }
  PyObject *name, *value;
  for (Py_ssize_t position = 0; PyDict_Next(given, &position, &name, &value);) {
    bool known = false;
    for (const PlanArray& each : wanted)
      known = known || PyUnicode_CompareWithASCIIString(name, each.name.c_str()) == 0;
    if (!known) return raise_invalid("the plan has no array '%U'", name);
  }
  MadePlan::Run run{.views = views.data(), .cuda = in(self).cuda, .stream = reinterpret_cast<void*>(stream)};
  Ref workspace;
  if (run.cuda && first) {
    if (!stream && !current_stream(*first, run.stream)) return nullptr;
    if (plan.workspace_bytes() > 0) {
      workspace = allocate_workspace(*first, plan.workspace_bytes(), run.workspace);
      if (!workspace) return nullptr;
    }
  }
  if (!plan.run(run)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* plan_prepare(PyObject* self, PyObject*) {
  if (!fine(trireme_plan_prepare((*in(self).plan)->handle()))) return nullptr;
  Py_RETURN_NONE;
}

template <trireme_status (*ask)(const trireme_plan*, const char**)>
PyObject* get_text(PyObject* self, void*) {
  const char* text = nullptr;
  return fine(ask((*in(self).plan)->handle(), &text)) ? PyUnicode_FromString(text) : nullptr;
}

PyObject* get_workspace_bytes(PyObject* self, void*) { return PyLong_FromSize_t((*in(self).plan)->workspace_bytes()); }

PyObject* get_arrays(PyObject* self, void*) {
  Ref list(PyList_New(0));
  for (const PlanArray& each : (*in(self).plan)->arrays()) {
    Ref item(Py_BuildValue("(ssOsO)", each.name.c_str(), each.result ? "result" : "operand", each.shape_tuple.get(),
                           type_name(each.type), each.needed ? Py_True : Py_False));
    if (!list || !item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.give();
}

PyObject* get_guarantee(PyObject* self, void*) {
  trireme_guarantee found = {};
  found.struct_size = sizeof found;
  if (!fine(trireme_plan_guarantee((*in(self).plan)->handle(), &found))) return nullptr;
  auto flag = [](int32_t value) { return value ? Py_True : Py_False; };
  return Py_BuildValue("{sssssisOsOsOsO}", "compute", type_name(found.compute), "accumulator",
                       type_name(found.accumulator), "contract", static_cast<int>(found.contract), "run_to_run",
                       flag(found.run_to_run), "across_batch", flag(found.across_batch), "across_threads",
                       flag(found.across_threads), "across_targets", flag(found.across_targets));
}

PyMethodDef methods[] = {
    {"_run", guarded<plan_run>, METH_VARARGS, "_run(arrays, stream=0)"},
    {"prepare", guarded<plan_prepare>, METH_NOARGS,
     "Does now what the first run would do; needed before a graph is captured."},
    {},
};
PyGetSetDef fields[] = {
    {"description", get_text<trireme_plan_describe>, nullptr, "What runs, in words.", nullptr},
    {"sku", get_text<trireme_plan_sku>, nullptr, "What exactly runs.", nullptr},
    {"line", get_text<trireme_plan_line>, nullptr, "The problem line.", nullptr},
    {"workspace_bytes", get_workspace_bytes, nullptr, "Memory that a run needs beside its arrays.", nullptr},
    {"arrays", get_arrays, nullptr, "(name, kind, shape, type, needed) of each.", nullptr},
    {"guarantee", get_guarantee, nullptr, "What may be relied on.", nullptr},
    {},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(guarded<plan_new>)},
    {Py_tp_dealloc, reinterpret_cast<void*>(plan_free)},
    {Py_tp_methods, methods},
    {Py_tp_getset, fields},
    {Py_tp_doc, const_cast<char*>("A program made ready for one shape, one set of types and one device.")},
    {},
};
PyType_Spec spec = {"trireme._core.Plan", sizeof(PlanObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

bool add_plan_type(PyObject* module) {
  Ref type(PyType_FromSpec(&spec));
  return type && PyModule_AddObjectRef(module, "Plan", type.get()) == 0;
}

}  // namespace trireme::python
