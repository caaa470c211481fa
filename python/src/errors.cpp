#include "errors.hpp"

#include <cstdarg>

namespace trireme::python {
namespace {

struct Record {
  const char* name;
  PyObject** builtin;  // a base beside TriremeError
  const char* doc;
  PyObject* type = nullptr;
};

// In the order of trireme_status; the last is ours alone.
Record records[] = {
    {"InvalidProgram", &PyExc_ValueError, "The text or graph of a program is wrong."},
    {"InvalidArgument", &PyExc_ValueError, "A shape, type, constant or array does not fit the program."},
    {"Unsupported", &PyExc_NotImplementedError, "Right, but not done by this device or version."},
    {"BufferTooSmall", &PyExc_ValueError, "`needed` and `got` say how many bytes."},
    {"NoDevice", &PyExc_RuntimeError, "There is no such device here; the message says why."},
    {"DriverError", &PyExc_RuntimeError, "A device's own library refused."},
    {"OutOfMemory", &PyExc_MemoryError, "Memory of the host or of the device is exhausted."},
    {"InternalError", &PyExc_RuntimeError, "A fault of Trireme's own; please report it."},
    {"WrongType", &PyExc_TypeError, "A Python object of a kind that is not taken."},
};
constexpr int wrong_type = 8;
PyObject* trireme_error = nullptr;

PyObject* raise_formatted(const Record& record, const char* format, va_list values) {
  Ref text(PyUnicode_FromFormatV(format, values));
  if (text) PyErr_SetObject(record.type, text.get());
  return nullptr;
}

}  // namespace

bool add_errors(PyObject* module) {
  trireme_error = PyErr_NewExceptionWithDoc("trireme.TriremeError", "What Trireme refuses, and why.", nullptr, nullptr);
  if (!trireme_error || PyModule_AddObjectRef(module, "TriremeError", trireme_error) < 0) return false;
  for (Record& record : records) {
    Ref bases(PyTuple_Pack(2, trireme_error, *record.builtin));
    Ref name(PyUnicode_FromFormat("trireme.%s", record.name));
    if (!bases || !name) return false;
    Ref bytes(PyUnicode_AsUTF8String(name.get()));
    record.type = PyErr_NewExceptionWithDoc(PyBytes_AsString(bytes.get()), record.doc, bases.get(), nullptr);
    if (!record.type || PyModule_AddObjectRef(module, record.name, record.type) < 0) return false;
  }
  return true;
}

PyObject* raise(trireme_status status) {
  Record& record = records[status - 1];
  Ref text(PyUnicode_FromString(trireme_last_error()));
  if (!text) return nullptr;
  Ref error(PyObject_CallFunctionObjArgs(record.type, text.get(), nullptr));
  if (!error) return nullptr;
  if (status == TRIREME_BUFFER_TOO_SMALL) {
    int64_t needed = 0, got = 0;
    trireme_last_error_bytes(&needed, &got);
    Ref n(PyLong_FromLongLong(needed)), g(PyLong_FromLongLong(got));
    if (!n || !g || PyObject_SetAttrString(error.get(), "needed", n.get()) < 0 ||
        PyObject_SetAttrString(error.get(), "got", g.get()) < 0)
      return nullptr;
  }
  PyErr_SetObject(record.type, error.get());
  return nullptr;
}

PyObject* raise_invalid(const char* format, ...) {
  va_list values;
  va_start(values, format);
  raise_formatted(records[TRIREME_INVALID_ARGUMENT - 1], format, values);
  va_end(values);
  return nullptr;
}

PyObject* raise_internal(const char* format, ...) {
  va_list values;
  va_start(values, format);
  raise_formatted(records[TRIREME_INTERNAL - 1], format, values);
  va_end(values);
  return nullptr;
}

PyObject* raise_type(const char* format, ...) {
  va_list values;
  va_start(values, format);
  raise_formatted(records[wrong_type], format, values);
  va_end(values);
  return nullptr;
}

}  // namespace trireme::python
