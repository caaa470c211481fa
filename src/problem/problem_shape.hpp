// Which arrays say the shape of a problem. docs/plans.md has the rule.
#pragma once
#include <functional>
#include <optional>

#include "ir/program.hpp"
#include "trireme/plan.hpp"

namespace trireme {

// Arrays by their places: operands, then results. An [i,j] array says all of a shape. Without one, the first array with
// a value or more for each row ([i], [i, j / 32]) says the outer axes, and the first with a value for each column ([j],
// a table [token, j], [i / m, j]) the normalised ones. Where no array has each row, the first that divides them,
// [i / m], says as many rows as fill its entries.
struct ShapeSources {
  std::optional<std::size_t> rows, columns;
};
ShapeSources shape_sources(const Program& program, const std::function<bool(std::size_t)>& is_given);

// The operand that says the columns of a problem where all are given. Others have its type, unless they are told.
std::optional<std::size_t> leading_operand(const Program& program);

// `shape_of`: of an array's place, null where it is not given. `constants`: those that are no defaults.
Result<Dims> problem_shape(const Program& program, const std::function<const Dims*(std::size_t)>& shape_of, Axes axes,
                           const std::map<std::string, double>& constants);

}  // namespace trireme
