// The names the language knows: primitives that are written as calls, functions of the table, and the reserved words.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "ir/node.hpp"

namespace trireme {

// How the arguments of a call are written, beyond the expressions that are its node's arguments.
enum class CallForm {
  Expressions,   // min(a, b)
  WithSymbol,    // cast(e, v), cast_stochastic(e, v, r), largest(v): v is an operand or result
  WithCount,     // bits_shift_left(e, 23): the last is how far
  WithStream,    // random(seed, 0): an operand with one value, a number below 2^32, and maybe a first row and column
  WithType,      // round_to(e, bf16)
  WithConstant,  // rotate(e, k): the last is a constant expression
  WholeResult,   // colsum(e), colmax(e): only as a result's whole right side
};

struct Callable {
  Op op;
  std::int64_t payload = 0;  // of Op::Call: which function
  int arity = 0;             // of the node
  CallForm form = CallForm::Expressions;
};
std::optional<Callable> callable_named(std::string_view name);

// Indices and numbers that are spelled with letters.
inline constexpr std::string_view words[] = {"i", "j", "n", "inf", "nan"};
bool is_word(std::string_view name);

// Words and what can be called, but for composed reductions: no operand, result or line may take such a name.
bool is_reserved(std::string_view name);
bool is_plain_name(std::string_view text);  // [A-Za-z_][A-Za-z0-9_]*, not too long, not reserved

inline constexpr std::size_t max_name_bytes = 128;

std::vector<std::string_view> callable_names();

}  // namespace trireme
