// Python's stable ABI, as one binary for every CPython from 3.10 on sees it, and references that give themselves back.
#pragma once
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030A0000
#endif
#include <Python.h>

#include <utility>

// The buffer protocol joined the stable ABI in 3.11. 3.10 has the same functions and the same structure.
#if Py_LIMITED_API < 0x030B0000
extern "C" {
typedef struct {
  void* buf;
  PyObject* obj;
  Py_ssize_t len, itemsize;
  int readonly, ndim;
  char* format;
  Py_ssize_t *shape, *strides, *suboffsets;
  void* internal;
} Py_buffer;
int PyObject_CheckBuffer(PyObject* object);
int PyObject_GetBuffer(PyObject* object, Py_buffer* view, int flags);
void PyBuffer_Release(Py_buffer* view);
}
#define PyBUF_WRITABLE 0x0001
#define PyBUF_FORMAT 0x0004
#define PyBUF_STRIDES (0x0010 | 0x0008)
#endif

namespace trireme::python {

// An owned reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  static Ref to(PyObject* borrowed) {
    Py_XINCREF(borrowed);
    return Ref(borrowed);
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    PyObject* old = std::exchange(object_, std::exchange(other.object_, nullptr));
    Py_XDECREF(old);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* give() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

inline Ref attribute(PyObject* object, const char* name) { return Ref(PyObject_GetAttrString(object, name)); }

// The attribute, or nothing and no error where there is none.
inline Ref attribute_if_any(PyObject* object, const char* name) {
  Ref found = attribute(object, name);
  if (!found && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
  return found;
}

}  // namespace trireme::python
