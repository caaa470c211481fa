#include "problem/problem_shape.hpp"

#include <fmt/format.h>

#include <functional>
#include <numeric>

#include "layout/flatten.hpp"
#include "support/out_of_memory.hpp"

namespace trireme {
namespace {

bool says_rows(const Spread& spread) { return spread.row.present && spread.row.plain(); }
bool divides_rows(const Spread& spread) { return spread.row.divide != no_node && spread.row.wrap == no_node; }
bool says_some_rows(const Spread& spread) { return says_rows(spread) || divides_rows(spread); }
bool says_columns(const Spread& spread) { return spread.column.present && spread.column.plain(); }
bool says_both(const Spread& spread) { return says_rows(spread) && says_columns(spread); }

template <typename IsGiven>
std::optional<std::size_t> first_array(const Program& program, const IsGiven& is_given, bool (*says)(const Spread&)) {
  for (std::size_t k = 0; k < program.array_count(); ++k)
    if (program.array(k).in_memory && says(program.array(k).spread) && is_given(k)) return k;
  return {};
}

// What would be needed.
Error no_shape(const Program& program, const ShapeSources& found) {
  const bool rows = !found.rows, columns = !found.columns;
  const auto says = rows && columns ? says_both : rows ? says_some_rows : says_columns;
  const char* what = rows && columns ? "rows and columns" : rows ? "rows" : "columns";
  std::string names;
  for (std::size_t k = 0; k < program.array_count(); ++k)
    if (const Program::Array array = program.array(k); array.in_memory && says(array.spread))
      names += (names.empty() ? "" : ", or ") + array.name;
  return {Code::InvalidArgument,
          names.empty() ? fmt::format("no array of {} says how many {} there are; a plan is told", program.name, what)
                        : fmt::format("{} needs an array for {}: nothing else says how many {} there are", program.name,
                                      names, what)};
}

// Of an array [i / a]: as many rows as fill its entries.
Result<std::int64_t> rows_that_fill(const Program& program, const Program::Array& array, const Dims& shape,
                                    std::int64_t columns, std::size_t inner,
                                    const std::map<std::string, double>& constants) {
  std::vector<double> values;
  for (const Operand& each : program.operands) {
    const auto said = constants.find(each.name);
    const bool has_default = each.constant && each.fallback != no_node && program[each.fallback].op == Op::Number;
    values.push_back(said != constants.end() ? said->second : has_default ? program[each.fallback].number() : 0);
  }
  TRIREME_TRY(index, indexing(program, array.spread, columns, values));
  const Axis& column = array.spread.column;
  std::int64_t rows = 0;
  if (shape.size() == 1 + (!column.present  ? 0
                           : column.plain() ? inner
                                            : 1) &&
      !__builtin_mul_overflow(shape[0], index.row.divide, &rows))
    return rows;
  return Error{Code::InvalidArgument,
               fmt::format("{} has the shape {}, and its first axis would say how many rows there are, {} to an entry",
                           array.name, print(shape), index.row.divide)};
}

}  // namespace

ShapeSources shape_sources(const Program& program, const std::function<bool(std::size_t)>& is_given) {
  if (std::optional<std::size_t> whole = first_array(program, is_given, says_both)) return {whole, whole};
  std::optional<std::size_t> rows = first_array(program, is_given, says_rows);
  if (!rows) rows = first_array(program, is_given, divides_rows);
  return {rows, first_array(program, is_given, says_columns)};
}

std::optional<std::size_t> leading_operand(const Program& program) {
  return shape_sources(program, [&](std::size_t k) { return k < program.operands.size(); }).columns;
}

Result<Dims> problem_shape(const Program& program, const std::function<const Dims*(std::size_t)>& shape_of, Axes axes,
                           const std::map<std::string, double>& constants) {
  const ShapeSources found = shape_sources(program, [&](std::size_t k) { return shape_of(k) != nullptr; });
  if (!found.rows || !found.columns) return no_shape(program, found);
  const Dims& columns = *shape_of(*found.columns);
  const Program::Array by_rows = program.array(*found.rows);
  if (says_both(by_rows.spread)) return columns;
  const std::size_t inner = axes.count < 1 ? 1 : static_cast<std::size_t>(axes.count);
  if (columns.size() < inner)
    return Error{Code::InvalidArgument,
                 fmt::format("{} has the shape {}, and the last {} {} of it would make a row",
                             program.array(*found.columns).name, print(columns), inner, inner == 1 ? "axis" : "axes")};
  const Dims& rows = *shape_of(*found.rows);
  const std::span<const std::int64_t> row(columns.end() - inner, columns.end());
  Dims shape;
  if (divides_rows(by_rows.spread)) {
    const std::int64_t count_of_columns = std::accumulate(row.begin(), row.end(), std::int64_t{1}, std::multiplies());
    TRIREME_TRY(count, rows_that_fill(program, by_rows, rows, count_of_columns, inner, constants));
    shape.push_back(count);
  } else {
    const bool has_groups = by_rows.spread.column.present;  // an axis more: [i, j / 32]
    for (std::size_t k = 0; k + has_groups < rows.size(); ++k) shape.push_back(rows[k]);
  }
  for (const std::int64_t extent : row) shape.push_back(extent);
  return shape;
}

Result<Dims> problem_shape(const RowProgram& program, const std::map<std::string, Dims>& shapes, Axes axes,
                           const std::map<std::string, double>& constants) {
  return or_out_of_memory([&] {
    return problem_shape(
        program.graph(),
        [&](std::size_t k) {
          const auto given = shapes.find(program.graph().array(k).name);
          return given == shapes.end() ? nullptr : &given->second;
        },
        axes, constants);
  });
}

}  // namespace trireme
