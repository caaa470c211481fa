// The whole-number arithmetic of random programs: divisors of indices, and what `rotate` turns by. All of it is whole
// for every n that is a multiple of the one promised, and for counts that divide 60.
#pragma once
#include <vector>

#include "ir/program.hpp"
#include "language/random_dice.hpp"

namespace trireme {

class RandomIndices {
 public:
  // `columns_multiple`: of which n is a multiple. `counts`: constants of the signature, small positive integers.
  RandomIndices(Program& program, Dice& dice, std::int64_t columns_multiple, const std::vector<std::size_t>& counts)
      : program_(program), dice_(dice), multiple_(columns_multiple), counts_(counts) {}

  Axis axis(bool divided);
  NodeId rotation();
  NodeId group();  // what a group's j is divided or wrapped by

 private:
  NodeId number(std::int64_t value) { return program_.number(static_cast<double>(value)); }
  // Braces: arguments are made from left to right, whatever the compiler.
  NodeId add(Op op, std::initializer_list<NodeId> args) { return program_.add(op, args); }
  NodeId columns() { return program_.add(Op::ColumnCount); }
  NodeId count();  // a constant, or a number where there is none
  NodeId divisor();
  NodeId quotient();
  NodeId positive();
  std::int64_t part_of_columns();  // a divisor of every n
  NodeId amount(int depth);
  NodeId whole_quotient(int depth);

  Program& program_;
  Dice& dice_;
  std::int64_t multiple_;
  const std::vector<std::size_t>& counts_;
};

}  // namespace trireme
