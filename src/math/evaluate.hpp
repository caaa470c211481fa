// Evaluates graphs of primitives for many arguments at once, each primitive as the contract rounds it.
// The tests of src/math run every f32 through it; it knows no rows, reductions or storage types.
#pragma once
#include <span>
#include <vector>

#include "ir/program.hpp"
#include "math/functions.hpp"

namespace trireme {

template <typename T>  // float or double: the compute type
class Evaluator {
 public:
  static constexpr std::size_t block = 1024;

  // `program` is expanded; its operands are the arguments, in order.
  Evaluator(const Program& program, NodeId root);

  // args[k] and out hold as many values as there are results wanted, at most `block`.
  void run(std::span<const T* const> args, std::span<T> out);

 private:
  struct Step {
    Node node;
    std::array<std::uint32_t, 3> from;  // buffers
    std::uint32_t to;
  };
  std::vector<Step> steps_;
  std::vector<std::vector<T>> buffers_;
  std::vector<std::pair<std::size_t, std::uint32_t>> inputs_;  // operand, buffer
  std::uint32_t root_ = 0;
};

// A program of one function's primitives; its operands are the arguments.
struct Expanded {
  Program program;
  NodeId root;
};
Expanded expanded(const Function& function, Type compute);
Expanded expanded_derivative(const Function& function, int k, Type compute);  // root: no_node where there is none

extern template class Evaluator<float>;
extern template class Evaluator<double>;

}  // namespace trireme
