// Arrays by DLPack and by __cuda_array_interface__.
#include <cstring>

#include "errors.hpp"
#include "types.hpp"

namespace trireme::python {

bool Array::take_tensor(const dlpack::Tensor& tensor, const char* what) {
  const TypeRecord* record = nullptr;
  for (const TypeRecord& each : types)
    if (each.dlpack.code == tensor.type.code && each.dlpack.bits == tensor.type.bits &&
        each.dlpack.lanes == tensor.type.lanes)
      record = &each;
  if (!record) {
    raise_invalid("%s: elements of DLPack type (%d, %d bits, %d lanes); %s", what, tensor.type.code, tensor.type.bits,
                  tensor.type.lanes, accepted);
    return false;
  }
  where.cuda = tensor.device.type == dlpack::Cuda || tensor.device.type == dlpack::CudaManaged;
  where.index = where.cuda ? tensor.device.index : 0;
  if (!where.cuda && tensor.device.type != dlpack::Cpu && tensor.device.type != dlpack::CudaHost) {
    raise_invalid("%s: an array on a device of DLPack type %d; CPU (1) and CUDA (2) are taken", what,
                  tensor.device.type);
    return false;
  }
  if (tensor.rank > max_rank) {
    raise_invalid("%s: %d axes; up to 8 are taken", what, tensor.rank);
    return false;
  }
  data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  rank = tensor.rank;
  for (int k = 0; k < rank; ++k) shape[k] = tensor.shape[k];
  contiguous = tensor.strides == nullptr;
  if (!contiguous) {
    for (int k = 0; k < rank; ++k) strides[k] = tensor.strides[k];
    find_contiguous();
  }
  take_type(record->type);
  return true;
}

// Elements of a tensor with torch's negative bit (the imaginary part of a conjugate) stand for their negatives.
bool Array::load_exchange(PyObject* object, const char* what, bool writable) {
  if (is_torch) {
    static PyObject *is_negative = PyUnicode_InternFromString("is_neg"),
                    *resolve = PyUnicode_InternFromString("resolve_neg");
    Ref negative(PyObject_CallMethodObjArgs(object, is_negative, nullptr));
    if (!negative) return false;
    if (negative.get() == Py_True) {
      if (writable) {
        raise_invalid("%s: a tensor with the negative bit, and a result is written to it; see resolve_neg()", what);
        return false;
      }
      held_ = Ref(PyObject_CallMethodObjArgs(object, resolve, nullptr));
      object = held_.get();
      if (!object) return false;
    }
  }
  dlpack::Tensor lent;
  if (exchange->tensor_from_object(object, &lent) != 0 || !take_tensor(lent, what)) return false;
  if (lent.data || elements() == 0) return true;
  raise_invalid("%s: a tensor without memory of its own (a fake tensor, or zeros that torch did not write)", what);
  return false;
}

bool Array::load_dlpack(PyObject* object, const char* what, bool writable) {
  Ref device(PyObject_CallMethod(object, "__dlpack_device__", nullptr));
  if (!device) return false;
  int device_type = 0, index = 0;
  if (!PyArg_ParseTuple(device.get(), "ii", &device_type, &index)) return false;
  Ref method = attribute(object, "__dlpack__"), none(PyTuple_New(0));
  Ref options(PyDict_New());
  if (!method || !none || !options) return false;
  if (device_type == dlpack::Cuda) {  // what was written so far is waited for by the legacy default stream
    Ref stream(PyLong_FromLong(1));
    if (!stream || PyDict_SetItemString(options.get(), "stream", stream.get()) < 0) return false;
  }
  Ref version(Py_BuildValue("(ii)", 1, 0));
  if (!version || PyDict_SetItemString(options.get(), "max_version", version.get()) < 0) return false;
  Ref capsule(PyObject_Call(method.get(), none.get(), options.get()));
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {  // older than versions
    PyErr_Clear();
    if (PyDict_DelItemString(options.get(), "max_version") < 0) return false;
    capsule = Ref(PyObject_Call(method.get(), none.get(), options.get()));
  }
  if (!capsule) return false;
  if (PyCapsule_IsValid(capsule.get(), "dltensor_versioned")) {
    auto* made = static_cast<dlpack::ManagedVersioned*>(PyCapsule_GetPointer(capsule.get(), "dltensor_versioned"));
    if (made->version.major != 1) {
      raise_invalid("%s: DLPack %u.%u; 1.x is taken", what, made->version.major, made->version.minor);
      return false;
    }
    PyCapsule_SetName(capsule.get(), "used_dltensor_versioned");
    versioned_ = made;
    read_only = made->flags & dlpack::read_only;
    return take_tensor(made->tensor, what);
  }
  auto* made = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule.get(), "dltensor"));
  if (!made) return false;
  PyCapsule_SetName(capsule.get(), "used_dltensor");
  managed_ = made;
  if (writable) read_only = false;  // capsules without a version cannot say
  return take_tensor(made->tensor, what);
}

bool Array::load_cuda_interface(PyObject* object, const char* what) {
  Ref interface = attribute(object, "__cuda_array_interface__");
  if (!interface) return false;
  PyObject* dict = interface.get();
  PyObject *said_shape = PyDict_GetItemString(dict, "shape"), *said_type = PyDict_GetItemString(dict, "typestr"),
           *said_data = PyDict_GetItemString(dict, "data"), *said_strides = PyDict_GetItemString(dict, "strides"),
           *said_stream = PyDict_GetItemString(dict, "stream");
  unsigned long long address = 0;
  int locked = 0;
  if (!said_shape || !said_type || !said_data || !PyArg_ParseTuple(said_data, "Kp", &address, &locked)) {
    if (!PyErr_Occurred()) raise_invalid("%s: __cuda_array_interface__ lacks shape, typestr or data", what);
    return false;
  }
  Ref text(PyUnicode_AsUTF8String(said_type));
  const char* typestr = text ? PyBytes_AsString(text.get()) : nullptr;
  if (!typestr) return false;
  const TypeRecord* record = nullptr;
  for (const TypeRecord& each : types)
    if (*typestr && *typestr != '>' && *each.interface && std::strcmp(typestr + 1, each.interface) == 0) record = &each;
  if (!set_type(*this, record, what, typestr)) return false;
  data = reinterpret_cast<void*>(address);
  read_only = locked;
  Py_ssize_t axes = PyTuple_Size(said_shape);
  if (axes < 0) return false;
  if (axes > max_rank) {
    raise_invalid("%s: %zd axes; up to 8 are taken", what, axes);
    return false;
  }
  rank = static_cast<int>(axes);
  Py_ssize_t byte_strides[max_rank];
  bool strided = said_strides && said_strides != Py_None;
  for (int k = 0; k < rank; ++k) {
    shape[k] = PyLong_AsLongLong(PyTuple_GetItem(said_shape, k));
    if (strided) byte_strides[k] = PyLong_AsSsize_t(PyTuple_GetItem(said_strides, k));
  }
  if (PyErr_Occurred()) return false;
  where.cuda = true;
  Ref device = attribute_if_any(object, "device");
  Ref id = device ? attribute_if_any(device.get(), "id") : Ref();
  if (id) where.index = static_cast<std::int32_t>(PyLong_AsLong(id.get()));
  if (said_stream && said_stream != Py_None) {
    stream = PyLong_AsVoidPtr(said_stream);
    has_stream = true;
  }
  if (PyErr_Occurred()) return false;
  return strided ? take_strides(byte_strides, record->bytes, what) : (contiguous = true);
}

}  // namespace trireme::python
