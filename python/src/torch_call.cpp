#include "torch_call.hpp"

#include "arguments.hpp"
#include "errors.hpp"

namespace trireme::python {
namespace {

// Borrowed for good: modules keep them.
struct Torch {
  PyObject *tensor = nullptr, *parameter = nullptr, *forward_ad = nullptr, *types_dict = nullptr,
           *is_grad_enabled = nullptr, *watchers = nullptr, *is_wrapped = nullptr;
  PyObject *level_name = nullptr, *requires_grad = nullptr, *is_meta = nullptr;
} torch;

PyObject* not_implemented() { return Ref::to(Py_NotImplemented).give(); }

enum class Answer { Yes, No, Error };

Answer truth(const Ref& value) {
  const int is_true = value ? PyObject_IsTrue(value.get()) : -1;
  return is_true < 0 ? Answer::Error : is_true ? Answer::Yes : Answer::No;
}

Answer is_plain(PyObject* const* operands, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) {
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(operands[k]));
    if (operands[k] == Py_None) continue;
    if (type != torch.tensor && type != torch.parameter) return Answer::No;
    const Answer meta = truth(Ref(PyObject_GetAttr(operands[k], torch.is_meta)));
    if (meta != Answer::No) return meta == Answer::Yes ? Answer::No : Answer::Error;
  }
  for (Py_ssize_t w = 0; w < PyTuple_Size(torch.watchers); ++w) {
    const Answer watched = truth(Ref(PyObject_CallNoArgs(PyTuple_GetItem(torch.watchers, w))));
    if (watched != Answer::No) return watched == Answer::Yes ? Answer::No : Answer::Error;
  }
  return Answer::Yes;
}

// A gradient may be a batch, or have been saved by a transform that is over.
Answer is_wrapped(PyObject* const* operands, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k)
    for (Py_ssize_t w = 0; operands[k] != Py_None && w < PyTuple_Size(torch.is_wrapped); ++w) {
      PyObject* function = PyTuple_GetItem(torch.is_wrapped, w);
      const Answer answer = truth(Ref(PyObject_CallFunctionObjArgs(function, operands[k], nullptr)));
      if (answer != Answer::No) return answer;
    }
  return Answer::No;
}

Answer needs_graph(PyObject* const* operands, std::size_t count) {
  Ref level(PyObject_GetAttr(torch.forward_ad, torch.level_name));
  if (!level) return Answer::Error;
  if (PyLong_AsLong(level.get()) >= 0) return Answer::Yes;
  const Answer enabled = truth(Ref(PyObject_CallNoArgs(torch.is_grad_enabled)));
  if (enabled != Answer::Yes) return enabled;
  for (std::size_t k = 0; k < count; ++k) {
    if (operands[k] == Py_None) continue;
    const Answer answer = truth(Ref(PyObject_GetAttr(operands[k], torch.requires_grad)));
    if (answer != Answer::No) return answer;
  }
  return Answer::No;
}

// Integers that torch's schema has, and the text of types.
bool read(Operator& op, Placed& placed, PyObject* axes, PyObject* types, PyObject* wanted, PyObject* row_block) {
  placed.axes = static_cast<std::int32_t>(PyLong_AsLong(axes));
  const long bits = wanted ? PyLong_AsLong(wanted) : -1;
  placed.wanted = static_cast<std::uint32_t>(bits) & ((1u << op.results.size()) - 1);
  placed.row_block = row_block ? static_cast<std::int32_t>(PyLong_AsLong(row_block)) : 0;
  if (PyErr_Occurred()) return false;
  if (PyUnicode_Check(types) && PyUnicode_GetLength(types) > 0) {
    if (op.last_types.text.get() != types) {
      Ref said(PyObject_CallFunctionObjArgs(torch.types_dict, types, nullptr));
      Arguments read(op);
      if (!said || !read.read_types(said.get())) return false;
      op.last_types.types = std::make_shared<const std::vector<std::int32_t>>(
          read.types, read.types + op.operands.size() + op.results.size());
      op.last_types.text = Ref::to(types);
    }
    placed.types = op.last_types.types;
  }
  return true;
}

PyObject* run(Operator& op, const Placed& placed, bool may_be_wrapped, bool says_graph) {
  const std::size_t count = op.operands.size();
  const Answer plain = is_plain(placed.operands, count);
  const Answer wrapped = plain == Answer::Yes && may_be_wrapped ? is_wrapped(placed.operands, count) : Answer::No;
  if (plain == Answer::Error || wrapped == Answer::Error) return nullptr;
  if (plain == Answer::No || wrapped == Answer::Yes || !placed.wanted || placed.axes < 1) return not_implemented();
  const Answer graph = needs_graph(placed.operands, count);
  if (graph == Answer::Error) return nullptr;
  if (graph == Answer::Yes) return says_graph ? Ref::to(Py_None).give() : not_implemented();
  bool loaded = false;
  PyObject* made = call(op, placed, loaded);
  if (made || loaded) return made;
  PyErr_Clear();  // a tensor without memory, or arguments that whoever is asked next refuses in torch's words
  return not_implemented();
}

// The items of a list or a tuple, no more than there is room for; -1: it is neither, or has more.
Py_ssize_t items(PyObject* sequence, PyObject** found, std::size_t room) {
  const bool is_tuple = PyTuple_Check(sequence);
  if (!is_tuple && !PyList_Check(sequence)) return -1;
  const Py_ssize_t count = is_tuple ? PyTuple_Size(sequence) : PyList_Size(sequence);
  if (count > static_cast<Py_ssize_t>(room)) return -1;
  for (Py_ssize_t k = 0; k < count; ++k)
    found[k] = is_tuple ? PyTuple_GetItem(sequence, k) : PyList_GetItem(sequence, k);
  return count;
}

struct Lists {
  PyObject *operands[max_arrays], *constants[max_constants];

  bool read(Operator& op, PyObject* const* given) {
    return items(given[0], operands, op.operands.size()) == static_cast<Py_ssize_t>(op.operands.size()) &&
           items(given[1], constants, op.constants.size()) == static_cast<Py_ssize_t>(op.constants.size());
  }
  Placed placed() const { return {.operands = operands, .constants = constants}; }
};

}  // namespace

PyObject* use_torch(PyObject*, PyObject* arguments) {
  Torch said;
  if (!PyArg_ParseTuple(arguments, "OOOOOOO", &said.tensor, &said.parameter, &said.forward_ad, &said.types_dict,
                        &said.is_grad_enabled, &said.watchers, &said.is_wrapped))
    return nullptr;
  if (!PyTuple_Check(said.watchers) || !PyTuple_Check(said.is_wrapped)) return raise_type("functions come as tuples");
  said.level_name = PyUnicode_InternFromString("_current_level");
  said.requires_grad = PyUnicode_InternFromString("requires_grad");
  said.is_meta = PyUnicode_InternFromString("is_meta");
  if (!said.level_name || !said.requires_grad || !said.is_meta) return nullptr;
  Py_INCREF(arguments);
  torch = said;
  Py_RETURN_NONE;
}

PyObject* quick_call(Operator& op, PyObject* const* given, Py_ssize_t count) {
  Lists lists;
  if (!torch.tensor || count != 7 || !lists.read(op, given)) return not_implemented();
  Placed placed = lists.placed();
  if (!read(op, placed, given[2], given[3], given[4], given[5])) return nullptr;
  return run(op, placed, given[6] == Py_True, true);
}

PyObject* placed_call(Operator& op, PyObject* const* given, Py_ssize_t count) {
  Lists lists;
  if (!torch.tensor || count != 6 || !lists.read(op, given))
    return raise_type("%s() takes %zu operands and %zu constants", op.name.c_str(), op.operands.size(),
                      op.constants.size());
  Placed placed = lists.placed();
  bool loaded = false;
  if (!read(op, placed, given[2], given[3], given[4], given[5])) return nullptr;
  return call(op, placed, loaded);
}

PyObject* quick_overload(Operator& op, PyObject* const* given, Py_ssize_t count) {
  const auto first = static_cast<Py_ssize_t>(op.operands.size() + op.constants.size());
  if (!torch.tensor || count < first + 2 || count > first + 4) return not_implemented();
  Placed placed{.operands = given, .constants = given + op.operands.size(), .absent = Absent::Empty};
  PyObject* const* rest = given + first;
  if (!read(op, placed, rest[0], rest[1], count > first + 2 ? rest[2] : nullptr, count > first + 3 ? rest[3] : nullptr))
    return nullptr;
  return run(op, placed, true, false);
}

}  // namespace trireme::python
