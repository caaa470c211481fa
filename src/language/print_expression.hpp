// Writes one node as text, given the texts of its arguments. print.cpp decides what gets a line of its own.
#pragma once
#include <span>
#include <string>

#include "ir/groups.hpp"

namespace trireme {

// How strongly the outermost operation of a text binds, loosest first.
enum class Precedence { Comparison, Sum, Product, Unary, Primary };

struct Phrase {
  std::string text;
  Precedence precedence = Precedence::Primary;
  int nesting = 0;            // of parentheses, calls and signs: what the parser's depth limit counts
  std::size_t equals_at = 0;  // where the outermost `==` stands, so that not(a == b) becomes a != b
};

Phrase phrase(const Program& program, NodeId id, std::span<const Phrase> args, ColumnSpreads& spreads);

// The arguments of a node that are written as expressions; what a group is divided by stands in its index.
constexpr int written_arguments(const Node& node) { return node.op == Op::Group ? 1 : node.arity; }

// The shortest text that reads back as the same number.
std::string number_text(double value);

// "[i,j]", "[(i / heads) % positions, j % (n / 2)]", "[]"
std::string spread_text(const Program& program, const Spread& spread);

}  // namespace trireme
