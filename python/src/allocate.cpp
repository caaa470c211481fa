#include "allocate.hpp"

#include "errors.hpp"

namespace trireme::python {
namespace {

// NumPy has no bf16, f8 and f4: there they travel as bits.
const char* numpy_name(std::int32_t type) {
  switch (type) {
    case TRIREME_F64: return "float64";
    case TRIREME_F32: return "float32";
    case TRIREME_F16: return "float16";
    case TRIREME_I8: return "int8";
    case TRIREME_I32: return "int32";
    case TRIREME_I64: return "int64";
    case TRIREME_BF16: return "uint16";
    default: return "uint8";
  }
}

PyObject* numpy_dtype(std::int32_t type) {
  static PyObject* found[TRIREME_F4E2M1 + 1] = {};
  if (!found[type] && numpy()) found[type] = PyObject_CallMethod(numpy(), "dtype", "s", numpy_name(type));
  return found[type];
}

PyObject* numpy_empty() {
  static PyObject* function = nullptr;
  if (!function && numpy()) function = PyObject_GetAttrString(numpy(), "empty");
  return function;
}

void set_error(void* context, const char* kind, const char* message) {
  static_cast<void>(context);
  PyErr_Format(PyExc_RuntimeError, "%s: %s", kind, message);
}

dlpack::ManagedVersioned* allocate_managed(const Array& like, std::int32_t type, int rank, const std::int64_t* shape) {
  dlpack::Tensor prototype = {};
  prototype.device = {like.where.cuda ? dlpack::Cuda : dlpack::Cpu, like.where.index};
  prototype.rank = rank;
  prototype.type = dlpack_type(type);
  prototype.shape = const_cast<std::int64_t*>(shape);
  dlpack::ManagedVersioned* made = nullptr;
  if (like.exchange->allocate(&prototype, &made, nullptr, set_error) != 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "the framework could not allocate a tensor");
    return nullptr;
  }
  return made;
}

// CuPy's module, of an array of its own; others have no way to make an array that is known here.
Ref cupy_of(const Array& like, const PlanArray& wanted) {
  Ref name(PyUnicode_FromString("cupy"));
  Ref cupy(like.family == Family::CudaInterface && name ? PyImport_GetModule(name.get()) : nullptr);
  if (cupy || PyErr_Occurred()) return cupy;
  raise_invalid("%s: memory on a GPU is made for torch and CuPy; give an array by %s=", wanted.name.c_str(),
                wanted.name == "workspace" ? "workspace" : "out");
  return {};
}

Ref empty_of(PyObject* module, PyObject* shape, std::int32_t type) {
  Ref function = attribute(module, "empty");
  PyObject* dtype = numpy_dtype(type);
  if (!function || !dtype) return {};
  return Ref(PyObject_CallFunctionObjArgs(function.get(), shape, dtype, nullptr));
}

}  // namespace

Ref allocate_like(const Array& like, const PlanArray& wanted, Array& array) {
  Ref object;
  if (like.family == Family::Exchange) {
    dlpack::ManagedVersioned* made = allocate_managed(like, wanted.type, wanted.rank, wanted.shape);
    const bool is_unknown = !made && wanted.type == TRIREME_F4E2M1;  // to the framework
    if (is_unknown) {
      PyErr_Clear();
      made = allocate_managed(like, TRIREME_U8, wanted.rank, wanted.shape);
    }
    if (!made) return {};
    array.family = Family::Exchange;
    array.exchange = like.exchange;
    if (!array.take_tensor(made->tensor, wanted.name.c_str())) return {};
    if (is_unknown) array.take_type(wanted.type);
    void* given = nullptr;
    if (like.exchange->object_from_managed(made, &given) != 0) return {};
    return Ref(static_cast<PyObject*>(given));
  }
  if (!like.where.cuda) {
    PyObject *function = numpy_empty(), *dtype = numpy_dtype(wanted.type);
    if (!function || !dtype) return {};
    object = Ref(PyObject_CallFunctionObjArgs(function, wanted.shape_tuple.get(), dtype, nullptr));
  } else {
    Ref cupy = cupy_of(like, wanted);
    if (!cupy) return {};
    object = empty_of(cupy.get(), wanted.shape_tuple.get(), wanted.type);
  }
  if (!object || !array.load(object.get(), wanted.name.c_str(), true)) return {};
  array.take_type(wanted.type);
  if (like.dtype && like.type == wanted.type)
    return Ref(PyObject_CallMethod(object.get(), "view", "O", like.dtype.get()));
  return object;
}

Ref allocate_nothing(const Array& like) {
  PlanArray wanted{.name = "nothing", .type = like.type, .rank = 1};
  wanted.shape_tuple = Ref(Py_BuildValue("(i)", 0));
  Array array;
  return wanted.shape_tuple ? allocate_like(like, wanted, array) : Ref();
}

Ref allocate_workspace(const Array& like, std::size_t bytes, void*& data) {
  PlanArray wanted{.name = "workspace", .type = TRIREME_I8, .rank = 1};
  wanted.shape[0] = static_cast<std::int64_t>(bytes);
  wanted.shape_tuple = Ref(Py_BuildValue("(n)", static_cast<Py_ssize_t>(bytes)));
  if (!wanted.shape_tuple) return {};
  Array array;
  Ref object = allocate_like(like, wanted, array);
  data = array.data;
  return object;
}

bool current_stream(const Array& like, void*& stream) {
  stream = nullptr;
  if (like.family == Family::Exchange)
    return like.exchange->current_stream(dlpack::Cuda, like.where.index, &stream) == 0;
  if (like.family == Family::CudaInterface && like.has_stream) {
    // 1 and 2 stand for the default streams: legacy and per thread. CUDA's own handles are the same numbers.
    stream = like.stream;
  }
  return true;
}

}  // namespace trireme::python
