#include "reference/reference.hpp"

#include "ir/primitives.hpp"
#include "layout/elements.hpp"
#include "reference/row_walk.hpp"
#include "support/contract_arithmetic.hpp"

namespace trireme {
namespace {

Error wrong(Code code, std::string message) { return {code, "reference: " + std::move(message)}; }

// A loop for every op, made from the one definition of what the op does.
template <typename T, Op op>
void row_loop(std::int64_t payload, const std::array<RowArgument<T>, 3>& args, std::span<T> out) {
  for (std::size_t j = 0; j < out.size(); ++j)
    out[j] = apply_primitive<T>(op, payload, args[0][j], args[1][j], args[2][j]);
}
template <typename T>
constexpr auto row_loops = []<std::size_t... k>(std::index_sequence<k...>) {
  return std::array{&row_loop<T, static_cast<Op>(k)>...};
}
(std::make_index_sequence<op_facts.size()>{});

// Numbers of the compute type T, each operation as the contract has it.
template <typename T>
struct ContractNumbers {
  using Value = T;
  static constexpr bool runs_expansions = true;
  std::span<const Array> results;

  bool takes(Op op) const { return op < Op::ColumnSum || op == Op::Rotate; }
  T number(double value) const { return static_cast<T>(value); }
  T integer(std::int64_t value) const { return static_cast<T>(value); }
  T condition(bool value) const { return value; }
  void apply(const Node& node, const std::array<RowArgument<T>, 3>& args, std::span<T> out) const {
    row_loops<T>[static_cast<std::size_t>(node.op)](node.payload, args, out);
  }
  T load(const Array& array, std::int64_t r, std::int64_t c) const {
    if (is_packed(array.type)) return static_cast<T>(value_at(array, r, c));
    if constexpr (std::is_same_v<T, double>) return load_f64(array.type, array.entry(r, c));
    return static_cast<T>(load_f32(array.type, array.entry(r, c)));
  }
  void store(std::size_t result, std::int64_t r, std::int64_t c, T value) const {
    set_value_at(results[result], r, c, value);  // a float is the double it equals
  }
};

// Not inlined, so that no arithmetic moves out of the scope that sets the state for it.
template <typename T>
[[gnu::noinline]] Status run_in(const Program& program, const Problem2d& problem) {
  ContractNumbers<T> numbers{problem.arrays.subspan(program.operands.size())};
  return RowWalk(program, problem, numbers).run();
}

}  // namespace

Status check_problem(const Program& program, const Problem2d& problem) {
  if (!program.compute) return wrong(Code::Internal, "the program is not bound");
  if (problem.columns < 1) return wrong(Code::InvalidArgument, "a row has at least one column");
  if (problem.rows < 0) return wrong(Code::InvalidArgument, "the number of rows is negative");
  if (problem.arrays.size() != program.array_count() || problem.constants.size() != program.operands.size())
    return wrong(Code::InvalidArgument, "one array per operand and result, one constant per operand");
  for (std::size_t k = 0; k < program.array_count(); ++k)
    if (const Program::Array array = program.array(k); array.type && array.type != problem.arrays[k].type)
      return wrong(Code::InvalidArgument,
                   (array.result ? "result '" : "operand '") + array.name + "' has another type than its array");
  return Done{};
}

Status run_reference(const Program& program, const Problem2d& problem) {
  TRIREME_CHECK(check_problem(program, problem));
  ContractArithmetic arithmetic;
  return program.compute == Type::F64 ? run_in<double>(program, problem) : run_in<float>(program, problem);
}

}  // namespace trireme
