#include "plan/problem_shape.hpp"

#include <fmt/format.h>

#include "layout/flatten.hpp"
#include "support/out_of_memory.hpp"

namespace trireme {
namespace {

bool says_rows(const Spread& spread) { return spread.row.present && spread.row.plain(); }
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
  const auto says = rows && columns ? says_both : rows ? says_rows : says_columns;
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

}  // namespace

ShapeSources shape_sources(const Program& program, const std::function<bool(std::size_t)>& is_given) {
  if (std::optional<std::size_t> whole = first_array(program, is_given, says_both)) return {whole, whole};
  return {first_array(program, is_given, says_rows), first_array(program, is_given, says_columns)};
}

std::optional<std::size_t> leading_operand(const Program& program) {
  return shape_sources(program, [&](std::size_t k) { return k < program.operands.size(); }).columns;
}

Result<Dims> problem_shape(const Program& program, const std::function<const Dims*(std::size_t)>& shape_of, Axes axes) {
  const ShapeSources found = shape_sources(program, [&](std::size_t k) { return shape_of(k) != nullptr; });
  if (!found.rows || !found.columns) return no_shape(program, found);
  const Dims& columns = *shape_of(*found.columns);
  if (found.rows == found.columns) return columns;
  const std::size_t inner = axes.count < 1 ? 1 : static_cast<std::size_t>(axes.count);
  if (columns.size() < inner)
    return Error{Code::InvalidArgument,
                 fmt::format("{} has the shape {}, and the last {} {} of it would make a row",
                             program.array(*found.columns).name, print(columns), inner, inner == 1 ? "axis" : "axes")};
  const Dims& rows = *shape_of(*found.rows);
  const bool has_groups = program.array(*found.rows).spread.column.present;  // an axis more: [i, j / 32]
  Dims shape;
  for (std::size_t k = 0; k + has_groups < rows.size(); ++k) shape.push_back(rows[k]);
  for (std::size_t k = columns.size() - inner; k < columns.size(); ++k) shape.push_back(columns[k]);
  return shape;
}

Result<Dims> problem_shape(const RowProgram& program, const std::map<std::string, Dims>& shapes, Axes axes) {
  return or_out_of_memory([&] {
    return problem_shape(
        program.graph(),
        [&](std::size_t k) {
          const auto given = shapes.find(program.graph().array(k).name);
          return given == shapes.end() ? nullptr : &given->second;
        },
        axes);
  });
}

}  // namespace trireme
