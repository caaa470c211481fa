// Options of the C interface read from Python's objects, with the memory that they point to.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "errors.hpp"
#include "operator.hpp"

namespace trireme::python {

class NamedOptions {
 protected:
  bool read_named(PyObject* types, PyObject* constants, PyObject* absent) {
    bool fine = each(types, [&](const char* name, PyObject* value) {
      std::int32_t type = type_from(value, name);
      types_.push_back({name, type});
      return type >= 0;
    });
    fine = fine && each(constants, [&](const char* name, PyObject* value) {
             constants_.push_back({name, PyFloat_AsDouble(value)});
             return !PyErr_Occurred();
           });
    return fine && names(absent, absent_);
  }
  template <typename Raw>
  void give_named(Raw& raw) const {
    raw.types = types_.data(), raw.type_count = types_.size();
    raw.constants = constants_.data(), raw.constant_count = constants_.size();
    raw.absent = absent_.data(), raw.absent_count = absent_.size();
  }

  const char* text(PyObject* said) {
    Ref bytes(PyUnicode_AsUTF8String(said));
    if (!bytes) return nullptr;
    return texts_.emplace_back(PyBytes_AsString(bytes.get())).c_str();
  }

  template <typename Take>
  bool each(PyObject* dict, Take&& take) {
    PyObject *name, *value;
    for (Py_ssize_t position = 0; PyDict_Next(dict, &position, &name, &value);) {
      const char* said = text(name);
      if (!said || !take(said, value)) return false;
    }
    return true;
  }

  bool names(PyObject* sequence, std::vector<const char*>& list) {
    if (sequence == Py_None) return true;
    Py_ssize_t count = PySequence_Size(sequence);
    for (Py_ssize_t k = 0; k < count; ++k) {
      Ref item(PySequence_GetItem(sequence, k));
      const char* said = item ? text(item.get()) : nullptr;
      if (!said) return false;
      list.push_back(said);
    }
    return count >= 0;
  }

  bool extents(PyObject* sequence, const std::int64_t*& values, std::int32_t& rank) {
    Py_ssize_t count = PySequence_Size(sequence);
    if (count < 0) return false;
    std::vector<std::int64_t>& list = extents_.emplace_back();
    for (Py_ssize_t k = 0; k < count; ++k) {
      Ref item(PySequence_GetItem(sequence, k));
      if (!item) return false;
      list.push_back(PyLong_AsLongLong(item.get()));
      if (PyErr_Occurred()) return false;
    }
    values = list.data();
    rank = static_cast<std::int32_t>(count);
    return true;
  }

 private:
  std::deque<std::string> texts_;
  std::deque<std::vector<std::int64_t>> extents_;
  std::vector<trireme_named_type> types_;
  std::vector<trireme_named_value> constants_;
  std::vector<const char*> absent_;
};

}  // namespace trireme::python
