#include "operator.hpp"

#include <algorithm>
#include <cstring>

#include "errors.hpp"

namespace trireme::python {

Operator::~Operator() {
  trireme_program_destroy(program);
  for (const auto& each : tuple_types_) Py_XDECREF(reinterpret_cast<PyObject*>(each->type));
}

Operator* Operator::of(trireme_program* program) {
  auto made = std::make_unique<Operator>();
  made->program = program;
  const char *name = nullptr, *text = nullptr;
  if (!fine(trireme_program_name(program, &name)) || !fine(trireme_program_print(program, &text))) return nullptr;
  made->name = name;
  made->text = text;
  return made->read_parameters() ? made.release() : nullptr;
}

Operator* Operator::parse(std::string_view text) {
  trireme_program* program = nullptr;
  return fine(trireme_program_parse(text.data(), text.size(), &program)) ? of(program) : nullptr;
}
Operator* Operator::named(const char* name) {
  trireme_program* program = nullptr;
  return fine(trireme_program_named(name, &program)) ? of(program) : nullptr;
}
Operator* Operator::differentiate(PyObject* gradients) const {
  trireme_program* backward = nullptr;
  std::vector<Ref> texts;
  std::vector<const char*> names;
  const bool said = gradients && gradients != Py_None;
  if (said) {
    Ref tuple(PySequence_Tuple(gradients));
    if (!tuple) return nullptr;
    for (Py_ssize_t k = 0; k < PyTuple_Size(tuple.get()); ++k) {
      texts.emplace_back(PyUnicode_AsUTF8String(PyTuple_GetItem(tuple.get(), k)));
      if (!texts.back()) return nullptr;
      names.push_back(PyBytes_AsString(texts.back().get()));
    }
  }
  if (!fine(said ? trireme_program_differentiate_for(program, names.data(), names.size(), &backward)
                 : trireme_program_differentiate(program, &backward)))
    return nullptr;
  Operator* made = of(backward);
  if (made) made->is_backward = true;
  return made;
}

bool Operator::read_parameters() {
  std::size_t count = 0;
  if (!fine(trireme_program_parameter_count(program, &count))) return false;
  for (std::size_t k = 0; k < count; ++k) {
    trireme_parameter from = {};
    from.struct_size = sizeof from;
    if (!fine(trireme_program_parameter(program, k, &from))) return false;
    Parameter parameter{.text = from.name,
                        .spread = from.spread,
                        .name = Ref(PyUnicode_InternFromString(from.name)),
                        .optional = from.optional != 0,
                        .fallback = from.fallback};
    if (!parameter.name) return false;
    auto& list = from.kind == TRIREME_OPERAND ? operands : from.kind == TRIREME_CONSTANT ? constants : results;
    list.push_back(std::move(parameter));
  }
  if (operands.size() + results.size() > max_arrays || results.size() > max_results ||
      constants.size() > max_constants) {
    raise_invalid("%s: Python calls programs of up to %zu arrays (%zu results) and %zu constants", name.c_str(),
                  max_arrays, max_results, max_constants);
    return false;
  }
  default_results = (1u << results.size()) - 1;
  return true;
}

std::shared_ptr<CachedPlan> Operator::find(std::string_view key) {
  auto found = plans_.find(key);
  if (found == plans_.end()) return nullptr;
  found->second->last_used = ++uses_;
  return found->second;
}

void Operator::add(std::string_view key, std::shared_ptr<CachedPlan> plan) {
  if (plans_.size() >= max_plans) {
    // A quarter at once: looking for the oldest takes a walk over all.
    std::vector<std::uint64_t> ages;
    for (const auto& [each, kept] : plans_) ages.push_back(kept->last_used);
    auto limit = ages.begin() + max_plans / 4;
    std::nth_element(ages.begin(), limit, ages.end());
    std::erase_if(plans_, [&](const auto& each) { return each.second->last_used < *limit; });
  }
  plan->last_used = ++uses_;
  plans_.emplace(key, std::move(plan));
}

PyTypeObject* Operator::tuple_type(std::uint32_t wanted) {
  for (const auto& each : tuple_types_)
    if (each->results == wanted) return each->type;
  auto made = std::make_unique<TupleType>();
  made->results = wanted;
  for (std::size_t k = 0; k < results.size(); ++k)
    if (wanted >> k & 1) made->names.push_back(results[k].text);
  for (const std::string& each : made->names) made->fields.push_back({each.c_str(), nullptr});
  made->fields.push_back({nullptr, nullptr});
  made->type_name = "trireme." + name + "_results";
  PyStructSequence_Desc description{made->type_name.c_str(), "Results, by name and in order.", made->fields.data(),
                                    static_cast<int>(made->names.size())};
  made->type = PyStructSequence_NewType(&description);
  if (!made->type) return nullptr;
  tuple_types_.push_back(std::move(made));
  return tuple_types_.back()->type;
}

}  // namespace trireme::python
