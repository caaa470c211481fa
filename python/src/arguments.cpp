#include "arguments.hpp"

#include <algorithm>
#include <cstring>

#include "errors.hpp"

namespace trireme::python {
namespace {

enum Option { Out, Results, Types, Axes, Threads, Stream, Workspace, Device, RowBlock, option_count };
constexpr const char* option_names[option_count] = {"out",    "results",   "types",  "axes",     "threads",
                                                    "stream", "workspace", "device", "row_block"};

PyObject* option_name(int k) {
  static PyObject* interned[option_count] = {};
  if (!interned[k]) interned[k] = PyUnicode_InternFromString(option_names[k]);
  return interned[k];
}

bool same_name(PyObject* a, PyObject* b) { return a == b || PyUnicode_Compare(a, b) == 0; }

}  // namespace

bool Arguments::read(PyObject* positional, PyObject* keywords) {
  Py_ssize_t count = PyTuple_Size(positional);
  if (count > static_cast<Py_ssize_t>(op.operands.size())) {
    raise_type("%s() takes %zu arrays by position, and %zd were given; constants and options go by name",
               op.name.c_str(), op.operands.size(), count);
    return false;
  }
  for (Py_ssize_t k = 0; k < count; ++k) operands[k] = PyTuple_GetItem(positional, k);
  if (!keywords) return true;
  PyObject *name, *value;
  for (Py_ssize_t position = 0; PyDict_Next(keywords, &position, &name, &value);)
    if (!take_keyword(name, value)) return false;
  return true;
}

void Arguments::read(const Placed& placed) {
  std::copy_n(placed.operands, op.operands.size(), operands);
  std::copy_n(placed.constants, op.constants.size(), constants);
  axes = placed.axes;
  row_block = placed.row_block;
  wanted = placed.wanted;
  if (placed.types) std::copy(placed.types->begin(), placed.types->end(), types);
}

bool Arguments::take_keyword(PyObject* name, PyObject* value) {
  for (std::size_t k = 0; k < op.operands.size(); ++k) {
    if (!same_name(name, op.operands[k].name.get())) continue;
    if (operands[k]) {
      raise_type("%s() got several values for '%U'", op.name.c_str(), name);
      return false;
    }
    operands[k] = value;
    return true;
  }
  for (std::size_t k = 0; k < op.constants.size(); ++k)
    if (same_name(name, op.constants[k].name.get())) return constants[k] = value, true;
  for (int k = 0; k < option_count; ++k)
    if (same_name(name, option_name(k))) return value == Py_None || take_option(k, value);
  std::string known;
  for (const auto* list : {&op.operands, &op.constants})
    for (const Parameter& each : *list) known += each.text + ", ";
  for (int k = 0; k < option_count; ++k) known += std::string(k ? ", " : "") + option_names[k];
  raise_type("%s() has no parameter '%U'; it has %s", op.name.c_str(), name, known.c_str());
  return false;
}

bool Arguments::take_option(int option, PyObject* value) {
  switch (static_cast<Option>(option)) {
    case Out: return out = value, true;
    case Results: return read_results(value);
    case Types: return read_types(value);
    case Axes: return read_integer("axes", value, 1, axes);
    case RowBlock: return read_integer("row_block", value, 0, row_block);
    case Threads: return read_integer("threads", value, 0, threads);
    case Stream: return stream = value, true;
    case Workspace: return workspace = value, true;
    case Device: {
      Ref text(PyUnicode_AsUTF8String(value));
      if (text) device = PyBytes_AsString(text.get());
      return static_cast<bool>(text);
    }
    case option_count: break;
  }
  return false;
}

bool Arguments::read_integer(const char* name, PyObject* said, long least, std::int32_t& value) const {
  long number = PyLong_AsLong(said);
  if (number == -1 && PyErr_Occurred()) return false;
  if (number < least || number > 1 << 20) {
    raise_invalid("%s() got %s=%ld; at least %ld is expected", op.name.c_str(), name, number, least);
    return false;
  }
  value = static_cast<std::int32_t>(number);
  return true;
}

int Arguments::result_named(PyObject* name) const {
  std::string known;
  for (std::size_t k = 0; k < op.results.size(); ++k) {
    if (PyUnicode_Check(name) && same_name(name, op.results[k].name.get())) return static_cast<int>(k);
    known += (k ? ", " : "") + op.results[k].text;
  }
  raise_invalid("%s has no result %R; it has %s", op.name.c_str(), name, known.c_str());
  return -1;
}

bool Arguments::read_results(PyObject* said) {
  if (PyUnicode_Check(said)) {
    if (PyUnicode_CompareWithASCIIString(said, "all") == 0) return wanted = (1u << op.results.size()) - 1, true;
    int k = result_named(said);
    return k < 0 ? false : (wanted = 1u << k, true);
  }
  Py_ssize_t count = PySequence_Size(said);
  if (count == 0) raise_invalid("%s(): results= names no result", op.name.c_str());
  wanted = 0;
  for (Py_ssize_t each = 0; each < count; ++each) {
    Ref name(PySequence_GetItem(said, each));
    int k = name ? result_named(name.get()) : -1;
    if (k < 0) return false;
    wanted |= 1u << k;
  }
  return count > 0;
}

bool Arguments::read_types(PyObject* said) {
  if (!PyDict_Check(said)) {
    raise_type("%s(): types= is a dict such as {'y': 'bf16'}", op.name.c_str());
    return false;
  }
  PyObject *name, *value;
  for (Py_ssize_t position = 0; PyDict_Next(said, &position, &name, &value);) {
    std::int32_t type = type_from(value, "types");
    if (type < 0) return false;
    bool found = false;
    for (std::size_t k = 0; k < op.operands.size() + op.results.size(); ++k)
      if (PyUnicode_Check(name) && same_name(name, array(k).name.get())) types[k] = type + 1, found = true;
    if (!found) {
      raise_invalid("%s has no array %R, which types= names", op.name.c_str(), name);
      return false;
    }
  }
  return true;
}

std::int32_t type_from(PyObject* said, const char* what) {
  constexpr struct {
    const char *name, *type;
  } others[] = {{"float64", "f64"},
                {"float32", "f32"},
                {"float16", "f16"},
                {"bfloat16", "bf16"},
                {"float8_e4m3fn", "f8e4m3"},
                {"float8_e5m2", "f8e5m2"},
                {"int8", "i8"},
                {"int32", "i32"},
                {"int64", "i64"},
                {"uint8", "u8"},
                {"bool", "u8"},
                {"float8_e8m0fnu", "f8e8m0"},
                {"float4_e2m1fn_x2", "f4e2m1"}};
  Ref text(PyUnicode_Check(said) ? Ref::to(said).give() : PyObject_Str(said));
  Ref bytes(text ? PyUnicode_AsUTF8String(text.get()) : nullptr);
  if (!bytes) return -1;
  const char* name = PyBytes_AsString(bytes.get());
  if (std::strncmp(name, "torch.", 6) == 0) name += 6;
  for (const auto& each : others)
    if (std::strcmp(each.name, name) == 0) name = each.type;
  std::int32_t type = type_named(name);
  if (type < 0)
    raise_invalid(
        "%s: there is no type '%s'; there are f64, f32, f16, bf16, f8e4m3, f8e5m2, i8, i32, i64, u8, f8e8m0, f4e2m1",
        what, name);
  return type;
}

}  // namespace trireme::python
