#include "math/evaluate.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

// One version with fused multiply-add in vectors, chosen when the program starts; both give the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TRIREME_EVALUATE_CLONES __attribute__((target_clones("arch=haswell", "default")))
#else
#define TRIREME_EVALUATE_CLONES
#endif

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
[[gnu::always_inline]] inline void step(const Node& node, const T* __restrict a, const T* __restrict b,
                                        const T* __restrict c, T* __restrict out) {
  auto each = [&](auto value) __attribute__((always_inline)) {
    for (std::size_t k = 0; k < Evaluator<T>::block; ++k) out[k] = value(k);
  };
  int by = static_cast<int>(node.payload);
  switch (node.op) {
    case Op::Add: return each([&](std::size_t k) { return a[k] + b[k]; });
    case Op::Sub: return each([&](std::size_t k) { return a[k] - b[k]; });
    case Op::Mul: return each([&](std::size_t k) { return a[k] * b[k]; });
    case Op::Div: return each([&](std::size_t k) { return a[k] / b[k]; });
    case Op::Neg: return each([&](std::size_t k) { return -a[k]; });
    case Op::Abs: return each([&](std::size_t k) { return std::fabs(a[k]); });
    case Op::Sqrt: return each([&](std::size_t k) { return std::sqrt(a[k]); });
    case Op::Fma: return each([&](std::size_t k) { return std::fma(a[k], b[k], c[k]); });
    case Op::Min: return each([&](std::size_t k) { return contract_min(a[k], b[k]); });
    case Op::Max: return each([&](std::size_t k) { return contract_max(a[k], b[k]); });
    case Op::Floor: return each([&](std::size_t k) { return std::floor(a[k]); });
    case Op::Round: return each([&](std::size_t k) { return std::nearbyint(a[k]); });
    case Op::Less: return each([&](std::size_t k) { return T(a[k] < b[k]); });
    case Op::LessEqual: return each([&](std::size_t k) { return T(a[k] <= b[k]); });
    case Op::Equal: return each([&](std::size_t k) { return T(a[k] == b[k]); });
    case Op::And: return each([&](std::size_t k) { return a[k] * b[k]; });
    case Op::Or: return each([&](std::size_t k) { return std::fmax(a[k], b[k]); });
    case Op::Not: return each([&](std::size_t k) { return 1 - a[k]; });
    case Op::Select: return each([&](std::size_t k) { return a[k] != 0 ? b[k] : c[k]; });
    case Op::BitsAdd: return each([&](std::size_t k) { return of_bits<T>(bits(a[k]) + bits(b[k])); });
    case Op::BitsAnd: return each([&](std::size_t k) { return of_bits<T>(bits(a[k]) & bits(b[k])); });
    case Op::BitsOr: return each([&](std::size_t k) { return of_bits<T>(bits(a[k]) | bits(b[k])); });
    case Op::BitsShiftLeft: return each([&](std::size_t k) { return of_bits<T>(bits(a[k]) << by); });
    case Op::BitsShiftRight: return each([&](std::size_t k) { return of_bits<T>(bits(a[k]) >> by); });
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
    case Op::ColumnSum:
    case Op::Mean:
    case Op::Call:
    case Op::Cast:
    case Op::Largest:
    case Op::Rotate:
    case Op::StopGradient: std::abort();  // not a primitive of elements
  }
}

TRIREME_EVALUATE_CLONES void step_f32(const Node& node, const float* a, const float* b, const float* c, float* out) {
  step(node, a, b, c, out);
}
TRIREME_EVALUATE_CLONES void step_f64(const Node& node, const double* a, const double* b, const double* c,
                                      double* out) {
  step(node, a, b, c, out);
}
void step_any(const Node& node, const float* a, const float* b, const float* c, float* out) {
  step_f32(node, a, b, c, out);
}
void step_any(const Node& node, const double* a, const double* b, const double* c, double* out) {
  step_f64(node, a, b, c, out);
}

}  // namespace

namespace {

void add_operands(Program& program, int arity) {
  for (int k = 0; k < arity; ++k) program.operands.push_back({std::string(1, static_cast<char>('x' + k))});
}

std::array<Expr, 3> arguments(Program& program, int arity) {
  std::array<Expr, 3> args;
  for (int k = 0; k < arity; ++k) args[k] = {&program, program.add(Op::Operand, {}, k)};
  return args;
}

}  // namespace

Expanded expanded(const Function& function, Type compute) {
  Expanded out;
  add_operands(out.program, function.arity);
  std::array<Expr, 3> args = arguments(out.program, function.arity);
  out.root = function.expand(compute, std::span<const Expr>(args.data(), function.arity)).id;
  return out;
}

Expanded expanded_derivative(const Function& function, int k, Type compute) {
  Program formula;
  add_operands(formula, function.arity);
  std::array<Expr, 3> args = arguments(formula, function.arity);
  std::span<const Expr> used(args.data(), function.arity);
  std::array<NodeId, 3> ids = {args[0].id, args[1].id, args[2].id};
  Expr value = {&formula, formula.add(Op::Call, std::span<const NodeId>(ids.data(), function.arity),
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
    std::array<Expr, 3> given;
    for (int arg = 0; arg < node.arity; ++arg) given[arg] = {&out.program, from[arg]};
    moved[id] = functions()[node.payload].expand(compute, std::span<const Expr>(given.data(), node.arity)).id;
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
    step_any(each.node, buffers_[each.from[0]].data(), buffers_[each.from[1]].data(), buffers_[each.from[2]].data(),
             buffers_[each.to].data());
  std::copy_n(buffers_[root_].data(), out.size(), out.data());
}

template class Evaluator<float>;
template class Evaluator<double>;

}  // namespace trireme
