#include "arrays.hpp"

#include <cstring>
#include <vector>

#include "errors.hpp"
#include "types.hpp"

namespace trireme::python {

bool set_type(Array& array, const TypeRecord* record, const char* what, const char* said) {
  if (!record) {
    raise_invalid("%s: elements of type '%s'; %s", what, said, accepted);
    return false;
  }
  array.type = record->type;
  return true;
}

namespace {

const TypeRecord* by_format(const char* format) {
  if (!format) format = "B";
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  for (const TypeRecord& each : types)
    if (each.format && each.format == format[0] && !format[1]) return &each;
  return nullptr;
}

// What type(x) offers, looked up once a type.
struct KnownType {
  PyObject* type;
  Family family;
  const dlpack::Exchange* exchange;
  bool is_buffer;
  bool is_torch = false;
};

const dlpack::Exchange* exchange_of(PyObject* type) {
  Ref capsule = attribute_if_any(type, "__dlpack_c_exchange_api__");
  if (!capsule) return nullptr;
  auto* header = static_cast<dlpack::ExchangeHeader*>(PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api"));
  PyErr_Clear();
  while (header && header->version.major != 1) header = header->previous;
  auto* found = reinterpret_cast<const dlpack::Exchange*>(header);
  return found && found->tensor_from_object ? found : nullptr;
}

const KnownType* known_type(PyObject* object, const char* what) {
  static std::vector<KnownType>& known = *new std::vector<KnownType>;
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  for (const KnownType& each : known)
    if (each.type == type) return &each;
  KnownType found{type, Family::NumPy, exchange_of(type), PyObject_CheckBuffer(object) != 0};
  if (found.exchange) {
    found.family = Family::Exchange;
    Ref name(PyUnicode_FromString("torch")), torch(name ? PyImport_GetModule(name.get()) : nullptr);
    Ref tensor = torch ? attribute_if_any(torch.get(), "Tensor") : Ref();
    found.is_torch = tensor && PyObject_IsInstance(object, tensor.get()) == 1;
  } else if (attribute_if_any(object, "__cuda_array_interface__")) {
    found.family = Family::CudaInterface;
  } else if (!found.is_buffer) {
    if (!attribute_if_any(object, "__dlpack__")) {
      if (!PyErr_Occurred())
        raise_type("%s: expected an array (NumPy, torch, CuPy, or anything with __dlpack__), got %R", what, type);
      return nullptr;
    }
    found.family = Family::Dlpack;
  }
  if (PyErr_Occurred()) return nullptr;
  if (known.size() >= 64) known.clear();  // types made in a loop
  Py_INCREF(type);
  known.push_back(found);
  return &known.back();
}

}  // namespace

int type_bytes(std::int32_t type) {
  for (const TypeRecord& each : types)
    if (each.type == type) return each.bytes;
  return 0;
}
const char* type_name(std::int32_t type) {
  for (const TypeRecord& each : types)
    if (each.type == type) return each.name;
  return "?";
}
std::int32_t type_named(const char* name) {
  for (const TypeRecord& each : types)
    if (each.type < Raw16 && std::strcmp(each.name, name) == 0) return each.type;
  return -1;
}
dlpack::DataType dlpack_type(std::int32_t type) {
  for (const TypeRecord& each : types)
    if (each.type == type) return each.dlpack;
  return {};
}

PyObject* numpy() {
  static PyObject* module = nullptr;
  if (!module) module = PyImport_ImportModule("numpy");
  return module;
}

bool torch_threads(std::int32_t& threads) {
  static PyObject* function = nullptr;
  if (!function) {
    Ref torch(PyImport_ImportModule("torch"));
    if (torch) function = PyObject_GetAttrString(torch.get(), "get_num_threads");
  }
  Ref count(function ? PyObject_CallNoArgs(function) : nullptr);
  if (!count) return false;
  threads = static_cast<std::int32_t>(PyLong_AsLong(count.get()));
  return !PyErr_Occurred();
}

bool Array::load(PyObject* object, const char* what, bool writable) {
  const KnownType* known = known_type(object, what);
  if (!known) return false;
  family = known->family;
  exchange = known->exchange;
  is_torch = known->is_torch;
  bool fine = false;
  switch (family) {
    case Family::NumPy: fine = load_buffer(object, what, writable); break;
    case Family::Exchange: fine = load_exchange(object, what, writable); break;
    case Family::CudaInterface: fine = load_cuda_interface(object, what); break;
    case Family::Dlpack: fine = load_dlpack(object, what, writable); break;
  }
  if (fine && writable && read_only) {
    raise_invalid("%s: the array is read-only, and a result is written to it", what);
    return false;
  }
  return fine;
}

void Array::find_contiguous() {
  contiguous = true;
  std::int64_t expected = 1;
  for (int k = rank; k-- > 0;) {
    if (shape[k] != 1 && strides[k] != expected) contiguous = false;
    expected *= shape[k];
  }
  if (expected == 0) contiguous = true;  // of no elements
}

void Array::take_type(std::int32_t is) {
  type = is;
  if (type != TRIREME_F4E2M1 || rank == 0) return;
  const int last = rank - 1;
  shape[last] *= 2;
  if (contiguous) return;
  for (int k = 0; k < last; ++k) strides[k] *= 2;
  if (strides[last] != 1) strides[last] *= 2;  // which the plan refuses, unless there is one byte
  find_contiguous();
}

bool Array::take_strides(const Py_ssize_t* byte_strides, Py_ssize_t item_bytes, const char* what) {
  for (int k = 0; k < rank; ++k) {
    if (byte_strides[k] % item_bytes != 0) {
      raise_invalid("%s: a stride of %zd bytes is no multiple of the %zd bytes of an element", what, byte_strides[k],
                    item_bytes);
      return false;
    }
    strides[k] = byte_strides[k] / item_bytes;
  }
  find_contiguous();
  return true;
}

bool Array::load_buffer(PyObject* object, const char* what, bool writable) {
  if (PyObject_GetBuffer(object, &buffer_, PyBUF_STRIDES | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) < 0)
    return load_custom_dtype(object, what, writable);
  if (!set_type(*this, by_format(buffer_.format), what, buffer_.format)) return false;
  if (buffer_.ndim > max_rank) {
    raise_invalid("%s: %d axes; up to 8 are taken", what, buffer_.ndim);
    return false;
  }
  data = buffer_.buf;
  rank = buffer_.ndim;
  read_only = buffer_.readonly;
  for (int k = 0; k < rank; ++k) shape[k] = buffer_.shape[k];
  return take_strides(buffer_.strides, buffer_.itemsize, what);
}

// ml_dtypes' arrays are no buffers, but their bits are.
bool Array::load_custom_dtype(PyObject* object, const char* what, bool writable) {
  Ref kind, error, trace;
  {
    PyObject *a, *b, *c;
    PyErr_Fetch(&a, &b, &c);
    kind = Ref(a), error = Ref(b), trace = Ref(c);
  }
  constexpr struct {
    const char* name;
    std::int32_t type;
    const char* bits;
  } customs[] = {{"bfloat16", TRIREME_BF16, "uint16"},
                 {"float8_e4m3fn", TRIREME_F8E4M3, "uint8"},
                 {"float8_e5m2", TRIREME_F8E5M2, "uint8"},
                 {"float8_e8m0fnu", TRIREME_F8E8M0, "uint8"}};
  Ref found = attribute_if_any(object, "dtype");
  Ref name = found ? attribute_if_any(found.get(), "name") : Ref();
  for (const auto& custom : customs) {
    if (!name || PyUnicode_CompareWithASCIIString(name.get(), custom.name) != 0) continue;
    held_ = Ref(PyObject_CallMethod(object, "view", "s", custom.bits));
    if (!held_ || !load_buffer(held_.get(), what, writable)) return false;
    type = custom.type;
    dtype = std::move(found);
    return true;
  }
  PyErr_Restore(kind.give(), error.give(), trace.give());
  return false;
}

}  // namespace trireme::python
