// From a Python call to a run: arguments are told apart, arrays looked at, the plan for their layout found or made,
// results allocated.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>

#include "allocate.hpp"
#include "arguments.hpp"
#include "errors.hpp"
#include "types.hpp"

namespace trireme::python {
namespace {

// 64-bit words that tell layouts apart.
class Key {
 public:
  void add(std::int64_t word) { words_[count_++] = word; }
  void add(const Array& array) {
    add(array.type | array.rank << 8 | array.contiguous << 16);
    for (int k = 0; k < array.rank; ++k) add(array.shape[k]);
    if (!array.contiguous)
      for (int k = 0; k < array.rank; ++k) add(array.strides[k]);
  }
  std::string_view view() const { return {reinterpret_cast<const char*>(words_), count_ * sizeof words_[0]}; }

 private:
  std::int64_t words_[16 + max_constants + max_arrays * (3 + 2 * max_rank)];
  std::size_t count_ = 0;
};

class Call {
 public:
  explicit Call(Operator& op) : op_(op), said_(op) {
    std::size_t count = op.operands.size() + op.results.size();
    if (count > std::size(few_)) many_ = std::make_unique<std::optional<Array>[]>(count);
    arrays_ = many_ ? many_.get() : few_;
  }

  PyObject* make(PyObject* arguments, PyObject* keywords) {
    Ref made[max_results];  // by the result's place
    if (!said_.read(arguments, keywords) || !load() || !run(made)) return nullptr;
    return give(made);
  }

  PyObject* make(const Placed& placed, bool& loaded) {
    Ref made[max_results];
    said_.read(placed);
    loaded = load();
    if (!loaded || !run(made)) return nullptr;
    return give(made, placed.absent);
  }

 private:
  bool run(Ref (&made)[max_results]) {
    if (!choose_threads()) return false;
    Key key;
    fill(key);
    std::shared_ptr<CachedPlan> cached = op_.find(key.view());
    if (!cached) {
      cached = make_plan();
      if (!cached) return false;
      op_.add(key.view(), cached);
    }
    return run(*cached, made);
  }

  bool load() {
    for (std::size_t k = 0; k < op_.operands.size(); ++k)
      if (said_.operands[k] && said_.operands[k] != Py_None && !load_array(k, said_.operands[k], false)) return false;
    for (std::size_t k = 0; k < op_.constants.size(); ++k) {
      const Parameter& each = op_.constants[k];
      values_[k] = each.fallback;
      if (!said_.constants[k] && !each.optional) {
        raise_type("%s() needs a number for %s", op_.name.c_str(), each.text.c_str());
        return false;
      }
      if (said_.constants[k]) values_[k] = PyFloat_AsDouble(said_.constants[k]);
      if (values_[k] == -1 && PyErr_Occurred()) return false;
    }
    if (said_.out && !load_out(said_.out)) return false;
    Shape shape;
    return anchor_ || find(shape);  // without any array: to say which is needed
  }

  struct Shape {
    std::int64_t extents[max_rank];
    std::int32_t rank;
  };

  // The problem's, from the arrays'.
  bool find(Shape& shape) const {
    std::vector<trireme_named_shape> shapes;
    for (std::size_t k = 0; k < op_.operands.size() + op_.results.size(); ++k)
      if (arrays_[k]) shapes.push_back({said_.array(k).text.c_str(), arrays_[k]->rank, arrays_[k]->shape});
    std::vector<trireme_named_value> constants;
    for (std::size_t k = 0; k < op_.constants.size(); ++k)
      constants.push_back({op_.constants[k].text.c_str(), values_[k]});
    const trireme_status status = trireme_problem_shape(op_.program, shapes.data(), shapes.size(), said_.axes,
                                                        constants.data(), constants.size(), shape.extents, &shape.rank);
    if (status == TRIREME_OK) return true;
    raise_type("%s", trireme_last_error());
    return false;
  }

  bool load_array(std::size_t k, PyObject* object, bool result) {
    Array& array = arrays_[k].emplace();
    const Parameter& what = said_.array(k);
    if (!array.load(object, what.text.c_str(), result)) return false;
    if (said_.types[k]) {
      std::int32_t said = said_.types[k] - 1;
      if (may_be(array.type, said)) array.take_type(said);
      if (array.type != said) {
        raise_invalid("%s: types= says %s, and the array is %s", what.text.c_str(), type_name(said),
                      type_name(array.type));
        return false;
      }
    }
    if (array.type == Raw16) {
      raise_invalid("%s: %s is bf16 in disguise; say so by types={'%s': 'bf16'}", what.text.c_str(),
                    type_name(array.type), what.text.c_str());
      return false;
    }
    if (!anchor_) anchor_ = &array;
    if (!(array.where == anchor_->where)) {
      raise_invalid("%s is on %s, others are on %s; all arrays of a call share a device", what.text.c_str(),
                    place(array.where).c_str(), place(anchor_->where).c_str());
      return false;
    }
    return true;
  }

  static std::string place(const Where& where) { return where.cuda ? "cuda:" + std::to_string(where.index) : "cpu"; }

  bool load_out(PyObject* said) {
    std::size_t offset = op_.operands.size();
    auto give = [&](std::size_t k, PyObject* object) {
      if (object == Py_None) return true;
      said_.wanted |= 1u << k;
      given_[k] = object;
      return load_array(offset + k, object, true);
    };
    if (PyDict_Check(said)) {
      PyObject *name, *value;
      for (Py_ssize_t position = 0; PyDict_Next(said, &position, &name, &value);) {
        int k = said_.result_named(name);
        if (k < 0 || !give(static_cast<std::size_t>(k), value)) return false;
      }
      return true;
    }
    if (!PyTuple_Check(said)) {
      if (__builtin_popcount(said_.wanted) == 1)
        return give(static_cast<std::size_t>(__builtin_ctz(said_.wanted)), said);
      raise_type("%s() gives several results; out= is a tuple of arrays or a dict by their names", op_.name.c_str());
      return false;
    }
    if (PyTuple_Size(said) != __builtin_popcount(said_.wanted)) {
      raise_type("%s() gives %d results, and out= has %zd", op_.name.c_str(), __builtin_popcount(said_.wanted),
                 PyTuple_Size(said));
      return false;
    }
    Py_ssize_t next = 0;
    for (std::size_t k = 0; k < op_.results.size(); ++k)
      if (said_.wanted >> k & 1 && !give(k, PyTuple_GetItem(said, next++))) return false;
    return true;
  }

  // A result given on the very memory of an operand means in place.
  int in_place_of(std::size_t result) const {
    const auto& to = arrays_[op_.operands.size() + result];
    for (std::size_t k = 0; to && k < op_.operands.size(); ++k)
      if (arrays_[k] && arrays_[k]->data == to->data && arrays_[k]->elements() > 0 && arrays_[k]->rank == to->rank)
        return static_cast<int>(k);
    return -1;
  }

  void fill(Key& key) const {
    key.add(said_.row_block);
    key.add(static_cast<std::int64_t>(said_.wanted) | static_cast<std::int64_t>(said_.axes) << 32);
    key.add(static_cast<std::int64_t>(said_.threads) | static_cast<std::int64_t>(anchor_->where.cuda) << 32 |
            static_cast<std::int64_t>(anchor_->where.index) << 33);
    if (!said_.device.empty()) key.add(static_cast<std::int64_t>(std::hash<std::string>()(said_.device)));
    for (std::size_t k = 0; k < op_.operands.size() + op_.results.size(); ++k) {
      std::int64_t said = said_.types[k];
      if (k >= op_.operands.size()) said |= static_cast<std::int64_t>(in_place_of(k - op_.operands.size()) + 1) << 8;
      if (arrays_[k]) key.add(said << 32 | 1), key.add(*arrays_[k]);
      else key.add(said << 32 | static_cast<std::int64_t>(is_required(k)) << 1);
    }
    for (std::size_t k = 0; k < op_.constants.size(); ++k) key.add(__builtin_bit_cast(std::int64_t, values_[k]));
  }

  // Waking threads takes about as long as moving so many bytes within a cache.
  bool is_small() const {
    std::int64_t bytes = 0;
    for (std::size_t k = 0; k < op_.operands.size() + op_.results.size(); ++k)
      bytes += arrays_[k] ? arrays_[k]->elements() * type_bytes(arrays_[k]->type) : 0;
    return bytes < 256 << 10;
  }

  // Unless the call says how many: one where the arrays are small, torch's own number for its tensors, else the plan's.
  bool choose_threads() {
    if (said_.threads || anchor_->where.cuda) return true;
    if (is_small()) return said_.threads = 1, true;
    return !anchor_->is_torch || torch_threads(said_.threads);
  }

  bool is_required(std::size_t k) const { return k < op_.operands.size() && !op_.operands[k].optional; }

  // An absent operand of a backward whose default is a formula has no gradient: that has flowed on into what the
  // formula reads. There is None in its place.
  bool has_flowed_on(std::size_t result) const {
    if (!op_.is_backward) return false;
    for (std::size_t k = 0; k < op_.operands.size(); ++k) {
      const Parameter& each = op_.operands[k];
      if (!arrays_[k] && each.optional && std::isnan(each.fallback) && op_.results[result].text == "d" + each.text)
        return true;
    }
    return false;
  }

  // The places of a plan's arrays; what is at none is named by `unknown`: a backward that fits what is absent may read
  // what the one that is called does not.
  std::vector<int> places_of(const MadePlan& plan, std::vector<std::string>& unknown) const {
    std::vector<int> places;
    for (const PlanArray& array : plan.arrays()) {
      const std::vector<Parameter>& among = array.result ? op_.results : op_.operands;
      auto found = std::find_if(among.begin(), among.end(), [&](const Parameter& p) { return p.text == array.name; });
      if (found == among.end()) unknown.push_back(array.name);
      else places.push_back(static_cast<int>(found - among.begin() + (array.result ? op_.operands.size() : 0)));
    }
    return places;
  }

  std::shared_ptr<CachedPlan> make_plan() const {
    Shape shape;
    if (!find(shape)) return nullptr;
    std::vector<trireme_named_type> types;
    std::vector<trireme_named_value> constants;
    std::vector<const char*> absent, results;
    std::vector<trireme_named_strides> strides;
    std::vector<trireme_in_place> in_place;
    for (std::size_t k = 0; k < op_.operands.size() + op_.results.size(); ++k) {
      const char* name = said_.array(k).text.c_str();
      if (k < op_.operands.size() && !arrays_[k] && op_.operands[k].optional) absent.push_back(name);
      if (arrays_[k]) types.push_back({name, arrays_[k]->type});
      else if (said_.types[k]) types.push_back({name, said_.types[k] - 1});
      if (arrays_[k] && !arrays_[k]->contiguous) strides.push_back({name, arrays_[k]->rank, arrays_[k]->strides});
      if (k < op_.operands.size()) continue;
      std::size_t result = k - op_.operands.size();
      if (said_.wanted >> result & 1 && (arrays_[k] || !has_flowed_on(result))) results.push_back(name);
      if (int operand = in_place_of(result); operand >= 0)
        in_place.push_back({name, op_.operands[operand].text.c_str()});
    }
    for (std::size_t k = 0; k < op_.constants.size(); ++k)
      if (said_.constants[k]) constants.push_back({op_.constants[k].text.c_str(), values_[k]});
    if (results.empty()) {
      raise_type("%s(): the gradients of what is absent have flowed on, and no other result is wanted",
                 op_.name.c_str());
      return nullptr;
    }
    trireme_plan_options options = {};
    options.struct_size = sizeof options;
    options.shape = shape.extents;
    options.rank = shape.rank;
    options.axes = said_.axes;
    options.types = types.data(), options.type_count = types.size();
    options.constants = constants.data(), options.constant_count = constants.size();
    options.absent = absent.data(), options.absent_count = absent.size();
    options.results = results.data(), options.result_count = results.size();
    options.strides = strides.data(), options.stride_count = strides.size();
    options.in_place = in_place.data(), options.in_place_count = in_place.size();
    options.threads = said_.threads;
    options.row_block = said_.row_block;
    std::string device = said_.device.empty() ? place(anchor_->where) : said_.device;
    auto cached = std::make_shared<CachedPlan>();
    cached->plan = MadePlan::make(device, op_.program, options);
    std::vector<std::string> unknown;
    if (cached->plan) cached->places = places_of(*cached->plan, unknown);
    if (!unknown.empty()) {  // saved results: they are recomputed
      for (const std::string& each : unknown) absent.push_back(each.c_str());
      options.absent = absent.data(), options.absent_count = absent.size();
      cached->plan = MadePlan::make(device, op_.program, options);
      std::vector<std::string> still;
      if (cached->plan) cached->places = places_of(*cached->plan, still);
      if (!still.empty()) {
        raise_internal("%s(): its plan has an array '%s', and the program has none", op_.name.c_str(),
                       still[0].c_str());
        return nullptr;
      }
    }
    return cached->plan ? cached : nullptr;
  }

  bool run(const CachedPlan& cached, Ref (&made)[max_results]) {
    const std::vector<PlanArray>& arrays = cached.plan->arrays();
    trireme_view views[max_arrays];
    for (std::size_t k = 0; k < arrays.size(); ++k) {
      std::size_t place = static_cast<std::size_t>(cached.places[k]);
      std::optional<Array>& array = arrays_[place];
      if (!array && arrays[k].result) {
        if (said_.array(place).is_table())
          return raise_type("%s(): %s is a table whose rows are picked, and is given by out=", op_.name.c_str(),
                            arrays[k].name.c_str()) != nullptr;
        made[place - op_.operands.size()] = allocate_like(*anchor_, arrays[k], array.emplace());
        if (!made[place - op_.operands.size()]) return false;
      }
      if (!array && arrays[k].needed)
        return raise_type("%s() needs an array for %s", op_.name.c_str(), arrays[k].name.c_str()) != nullptr;
      views[k] = array ? array->view() : trireme_view{.struct_size = sizeof(trireme_view), .type = arrays[k].type};
    }
    MadePlan::Run run{.views = views, .cuda = anchor_->where.cuda};
    Ref workspace;
    Array lent;
    if (run.cuda) {
      if (!find_stream(run.stream)) return false;
      if (said_.workspace) {
        if (!lend_workspace(lent, cached.plan->workspace_bytes())) return false;
        run.workspace = lent.data;
      } else if (cached.plan->workspace_bytes() > 0) {
        workspace = allocate_workspace(*anchor_, cached.plan->workspace_bytes(), run.workspace);
        if (!workspace) return false;
      }
    }
    return cached.plan->run(run);
  }

  bool lend_workspace(Array& lent, std::size_t needed) {
    if (!lent.load(said_.workspace, "workspace", true)) return false;
    std::size_t bytes = static_cast<std::size_t>(lent.elements()) * static_cast<std::size_t>(type_bytes(lent.type));
    if (lent.contiguous && lent.where == anchor_->where && bytes >= needed) return true;
    raise_invalid("%s(): workspace= is a contiguous array on %s of at least %zu bytes", op_.name.c_str(),
                  place(anchor_->where).c_str(), needed);
    return false;
  }

  bool find_stream(void*& stream) {
    PyObject* said = said_.stream;
    if (!said) return current_stream(*anchor_, stream);
    Ref number = PyLong_Check(said) ? Ref::to(said) : attribute_if_any(said, "cuda_stream");
    if (!number && !PyErr_Occurred()) number = attribute(said, "ptr");
    if (!number) return false;
    stream = PyLong_AsVoidPtr(number.get());
    return !PyErr_Occurred();
  }

  PyObject* give(Ref (&made)[max_results]) {
    auto object = [&](std::size_t k) {
      return given_[k] ? Ref::to(given_[k]).give() : made[k] ? made[k].give() : Ref::to(Py_None).give();
    };
    if (__builtin_popcount(said_.wanted) == 1) return object(static_cast<std::size_t>(__builtin_ctz(said_.wanted)));
    PyTypeObject* type = op_.tuple_type(said_.wanted);
    Ref tuple(type ? PyStructSequence_New(type) : nullptr);
    if (!tuple) return nullptr;
    Py_ssize_t next = 0;
    for (std::size_t k = 0; k < op_.results.size(); ++k)
      if (said_.wanted >> k & 1) PyStructSequence_SetItem(tuple.get(), next++, object(k));
    return tuple.give();
  }

  // All results as a tuple. The places of those that were not wanted hold None, or arrays of no elements.
  PyObject* give(Ref (&made)[max_results], Absent absent) {
    const std::size_t count = op_.results.size();
    for (std::size_t k = 0; k < count; ++k) {
      if (made[k]) continue;
      made[k] = absent == Absent::None ? Ref::to(Py_None) : allocate_nothing(*anchor_);
      if (!made[k]) return nullptr;
    }
    if (absent == Absent::Empty && count == 1) return made[0].give();
    Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(count)));
    for (std::size_t k = 0; tuple && k < count; ++k)
      PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(k), made[k].give());
    return tuple.give();
  }

  Operator& op_;
  Arguments said_;
  PyObject* given_[max_results] = {};  // borrowed
  double values_[max_constants];
  std::optional<Array> few_[16];  // the arrays of all but derivatives of high order
  std::unique_ptr<std::optional<Array>[]> many_;
  std::optional<Array>* arrays_;  // operands, then results
  Array* anchor_ = nullptr;       // the first that was given
};

}  // namespace

PyObject* call(Operator& op, PyObject* arguments, PyObject* keywords) { return Call(op).make(arguments, keywords); }
PyObject* call(Operator& op, const Placed& placed, bool& loaded) { return Call(op).make(placed, loaded); }

}  // namespace trireme::python
