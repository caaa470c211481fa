// A program that Python can call: what its parameters are, and the plans made for it so far.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "made_plan.hpp"

namespace trireme::python {

inline constexpr std::size_t max_arrays = 63;   // operands and results
inline constexpr std::size_t max_results = 31;  // sets of them are bits of a word
inline constexpr std::size_t max_constants = 32;
inline constexpr std::size_t max_plans = 256;  // an operator; those used longest ago go first

struct Parameter {
  std::string text;
  std::string spread;
  Ref name;  // interned
  bool optional = false;
  double fallback = 0;
  // Its rows are picked by an operand: [slot, j], [slot].
  bool is_table() const {
    const std::string first = spread.substr(1, spread.find_first_of(",]") - 1);
    return !first.empty() && first != "i" && first != "j" && first.find_first_of(" (/%") == first.npos;
  }
};

// Of operands, then of results: a type plus 1, or 0. Shared, as another thread's call may say others meanwhile.
using SaidTypes = std::shared_ptr<const std::vector<std::int32_t>>;

// What a call is answered with, by the layout of its arguments.
struct CachedPlan {
  std::shared_ptr<MadePlan> plan;
  std::vector<int> places;  // of the plan's arrays among the operator's operands, then results
  std::uint64_t last_used = 0;
};

struct KeyHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view key) const {
    // Keys are whole words, and few bits of them differ: multiply and fold.
    std::uint64_t hash = key.size();
    for (std::size_t k = 0; k + 8 <= key.size(); k += 8) {
      std::uint64_t word;
      __builtin_memcpy(&word, key.data() + k, 8);
      hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

class Operator {
 public:
  ~Operator();
  // Null with a Python error.
  static Operator* parse(std::string_view text);
  static Operator* named(const char* name);
  Operator* differentiate(PyObject* gradients) const;  // names of results; null or None: those that arrive unless said

  trireme_program* program = nullptr;
  std::string name, text;
  std::vector<Parameter> operands, constants, results;
  std::uint32_t default_results = 0;  // a bit each
  bool is_backward = false;
  // The text of types that the last call in places gave, and what it says.
  struct {
    Ref text;
    SaidTypes types;
  } last_types;

  std::shared_ptr<CachedPlan> find(std::string_view key);
  void add(std::string_view key, std::shared_ptr<CachedPlan> plan);
  std::size_t plan_count() const { return plans_.size(); }
  // The type of what is returned where that is several arrays. Borrowed; null with a Python error.
  PyTypeObject* tuple_type(std::uint32_t results);

 private:
  static Operator* of(trireme_program* program);
  bool read_parameters();

  std::unordered_map<std::string, std::shared_ptr<CachedPlan>, KeyHash, std::equal_to<>> plans_;
  std::uint64_t uses_ = 0;
  struct TupleType {
    std::uint32_t results;
    std::vector<std::string> names;  // the type points into them
    std::string type_name;
    std::vector<PyStructSequence_Field> fields;
    PyTypeObject* type;
  };
  std::vector<std::unique_ptr<TupleType>> tuple_types_;
};

// Calls it. Null with a Python error.
PyObject* call(Operator& op, PyObject* arguments, PyObject* keywords);

// What stands for a result that was not wanted, among all results: None, or an array of no elements (a result that is
// the only one then comes without a tuple).
enum class Absent : std::uint8_t { None, Empty };

// Arguments in their places, as torch's dispatcher has them. Borrowed.
struct Placed {
  PyObject* const* operands;   // None: absent
  PyObject* const* constants;  // numbers
  SaidTypes types;             // null: none is said
  std::int32_t axes = 1, row_block = 0;
  std::uint32_t wanted = 0;
  Absent absent = Absent::None;
};
// All results, as a tuple. Null with a Python error; `loaded`: it is none of the arguments alone.
PyObject* call(Operator& op, const Placed& placed, bool& loaded);

// A name of a type, or something whose str() is one (a dtype of NumPy or torch). -1 with a Python error.
std::int32_t type_from(PyObject* said, const char* what);

}  // namespace trireme::python
