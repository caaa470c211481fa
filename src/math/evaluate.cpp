#include "math/evaluate.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <type_traits>

#include "support/fma.hpp"

namespace trireme {
namespace {

template <typename T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <typename T>
inline Bits<T> bits(T x) {
  return std::bit_cast<Bits<T>>(x);
}
template <typename T>
inline T of_bits(Bits<T> x) {
  return std::bit_cast<T>(x);
}

template <typename T>
inline T contract_min(T a, T b) {
  T least = a == b ? of_bits<T>(bits(a) | bits(b)) : (a < b ? a : b);
  return a != a || b != b ? a + b : least;
}
template <typename T>
inline T contract_max(T a, T b) {
  T most = a == b ? of_bits<T>(bits(a) & bits(b)) : (a > b ? a : b);
  return a != a || b != b ? a + b : most;
}

// Conditions are 0 or 1.
template <typename T>
void step(const Node& node, const T* __restrict a, const T* __restrict b, const T* __restrict c, T* __restrict out) {
  constexpr std::size_t n = Evaluator<T>::block;
  int by = static_cast<int>(node.payload);
  switch (node.op) {
    case Op::Add:
      for (std::size_t k = 0; k < n; ++k) out[k] = a[k] + b[k];
      return;
    case Op::Sub:
      for (std::size_t k = 0; k < n; ++k) out[k] = a[k] - b[k];
      return;
    case Op::Mul:
      for (std::size_t k = 0; k < n; ++k) out[k] = a[k] * b[k];
      return;
    case Op::Div:
      for (std::size_t k = 0; k < n; ++k) out[k] = a[k] / b[k];
      return;
    case Op::Neg:
      for (std::size_t k = 0; k < n; ++k) out[k] = -a[k];
      return;
    case Op::Abs:
      for (std::size_t k = 0; k < n; ++k) out[k] = std::fabs(a[k]);
      return;
    case Op::Sqrt:
      for (std::size_t k = 0; k < n; ++k) out[k] = std::sqrt(a[k]);
      return;
    case Op::Fma: return fma_all(a, b, c, out, n);
    case Op::Min:
      for (std::size_t k = 0; k < n; ++k) out[k] = contract_min(a[k], b[k]);
      return;
    case Op::Max:
      for (std::size_t k = 0; k < n; ++k) out[k] = contract_max(a[k], b[k]);
      return;
    case Op::Floor:
      for (std::size_t k = 0; k < n; ++k) out[k] = std::floor(a[k]);
      return;
    case Op::Round:
      for (std::size_t k = 0; k < n; ++k) out[k] = std::nearbyint(a[k]);
      return;
    case Op::Less:
      for (std::size_t k = 0; k < n; ++k) out[k] = T(a[k] < b[k]);
      return;
    case Op::LessEqual:
      for (std::size_t k = 0; k < n; ++k) out[k] = T(a[k] <= b[k]);
      return;
    case Op::Equal:
      for (std::size_t k = 0; k < n; ++k) out[k] = T(a[k] == b[k]);
      return;
    case Op::And:
      for (std::size_t k = 0; k < n; ++k) out[k] = a[k] * b[k];
      return;
    case Op::Or:
      for (std::size_t k = 0; k < n; ++k) out[k] = std::fmax(a[k], b[k]);
      return;
    case Op::Not:
      for (std::size_t k = 0; k < n; ++k) out[k] = 1 - a[k];
      return;
    case Op::Select:
      for (std::size_t k = 0; k < n; ++k) out[k] = a[k] != 0 ? b[k] : c[k];
      return;
    case Op::BitsAdd:
      for (std::size_t k = 0; k < n; ++k) out[k] = of_bits<T>(bits(a[k]) + bits(b[k]));
      return;
    case Op::BitsAnd:
      for (std::size_t k = 0; k < n; ++k) out[k] = of_bits<T>(bits(a[k]) & bits(b[k]));
      return;
    case Op::BitsOr:
      for (std::size_t k = 0; k < n; ++k) out[k] = of_bits<T>(bits(a[k]) | bits(b[k]));
      return;
    case Op::BitsShiftLeft:
      for (std::size_t k = 0; k < n; ++k) out[k] = of_bits<T>(bits(a[k]) << by);
      return;
    case Op::BitsShiftRight:
      for (std::size_t k = 0; k < n; ++k) out[k] = of_bits<T>(bits(a[k]) >> by);
      return;
    case Op::Number:
    case Op::Constant:
    case Op::Operand:
    case Op::RowIndex:
    case Op::ColumnIndex:
    case Op::ColumnCount:
    case Op::RoundTo:
    case Op::Sum:
    case Op::Amax:
    case Op::Amin:
    case Op::Fold:
    case Op::Group:
    case Op::PickColumn:
    case Op::ColumnSum:
    case Op::ColumnMax:
    case Op::Mean:
    case Op::Reduce:
    case Op::ReduceSpread:
    case Op::Call:
    case Op::Cast:
    case Op::CastStochastic:
    case Op::Random:
    case Op::Largest:
    case Op::Rotate:
    case Op::StopGradient: std::abort();  // not a primitive of elements
  }
}

}  // namespace

namespace {

void add_operands(Program& program, int arity) {
  for (int k = 0; k < arity; ++k) program.operands.push_back({std::string(1, static_cast<char>('x' + k))});
}

std::array<Formula, 3> arguments(Program& program, int arity) {
  std::array<Formula, 3> args;
  for (int k = 0; k < arity; ++k) args[k] = {&program, program.add(Op::Operand, {}, k)};
  return args;
}

}  // namespace

Expanded expanded(const Function& function, Type compute) {
  Expanded out;
  out.program.compute = compute;
  add_operands(out.program, function.arity);
  std::array<Formula, 3> args = arguments(out.program, function.arity);
  out.root = function.expand(compute, std::span<const Formula>(args.data(), function.arity)).id;
  return out;
}

Expanded expanded_derivative(const Function& function, int k, Type compute) {
  Program formula;
  add_operands(formula, function.arity);
  std::array<Formula, 3> args = arguments(formula, function.arity);
  std::span<const Formula> used(args.data(), function.arity);
  std::array<NodeId, 3> ids = {args[0].id, args[1].id, args[2].id};
  Formula value = {&formula, formula.add(Op::Call, std::span<const NodeId>(ids.data(), function.arity),
                                         &function - functions().data())};
  NodeId root = function.derivative(used, value, k).id;
  Expanded out;
  add_operands(out.program, function.arity);
  if (root == no_node) return {std::move(out.program), no_node};
  std::vector<NodeId> moved(formula.size());
  for (NodeId id = 0; id <= root; ++id) {
    const Node& node = formula[id];
    std::array<NodeId, 3> from = node.args;
    for (int arg = 0; arg < node.arity; ++arg) from[arg] = moved[node.args[arg]];
    if (node.op != Op::Call) {
      moved[id] = out.program.add(node.op, std::span<const NodeId>(from.data(), node.arity), node.payload);
      continue;
    }
    std::array<Formula, 3> given;
    for (int arg = 0; arg < node.arity; ++arg) given[arg] = {&out.program, from[arg]};
    moved[id] = functions()[node.payload].expand(compute, std::span<const Formula>(given.data(), node.arity)).id;
  }
  out.root = moved[root];
  return out;
}

template <typename T>
Evaluator<T>::Evaluator(const Program& program, NodeId root) {
  std::vector<bool> reached(program.size());
  reached[root] = true;
  for (NodeId id = root + 1; id-- > 0;)
    if (reached[id])
      for (NodeId arg : program[id]) reached[arg] = true;
  std::vector<std::uint32_t> buffer_of(program.size());
  for (NodeId id = 0; id <= root; ++id) {
    if (!reached[id]) continue;
    const Node& node = program[id];
    std::uint32_t to = buffer_of[id] = static_cast<std::uint32_t>(buffers_.size());
    buffers_.emplace_back(block, node.op == Op::Number ? static_cast<T>(node.number()) : T(0));
    if (node.op == Op::Operand || node.op == Op::Constant) inputs_.emplace_back(node.payload, to);
    else if (node.arity > 0) {
      Step next{node, {0, 0, 0}, to};
      for (int k = 0; k < node.arity; ++k) next.from[k] = buffer_of[node.args[k]];
      steps_.push_back(next);
    }
  }
  root_ = buffer_of[root];
}

template <typename T>
void Evaluator<T>::run(std::span<const T* const> args, std::span<T> out) {
  for (auto [operand, buffer] : inputs_) std::copy_n(args[operand], out.size(), buffers_[buffer].data());
  for (const Step& each : steps_)
    step(each.node, buffers_[each.from[0]].data(), buffers_[each.from[1]].data(), buffers_[each.from[2]].data(),
         buffers_[each.to].data());
  std::copy_n(buffers_[root_].data(), out.size(), out.data());
}

template class Evaluator<float>;
template class Evaluator<double>;

}  // namespace trireme
