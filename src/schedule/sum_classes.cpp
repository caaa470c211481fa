#include "schedule/sum_classes.hpp"

#include <algorithm>
#include <bit>

#include "ir/contract.hpp"
#include "ir/index_arithmetic.hpp"
#include "ir/rewrite.hpp"

namespace trireme {

const Program& with_row_sums(const Program& program, std::optional<Program>& made) {
  auto sums_rows = [&](const Output& result) {
    return result.value != no_node && is_column_reduction(program[result.value].op) &&
           program[result.value].payload != of_row_values && !result.spread.column.present;
  };
  if (std::none_of(program.results.begin(), program.results.end(), sums_rows)) return program;
  Program& out = made.emplace(rewrite(program, copy_node));
  for (std::size_t r = 0; r < out.results.size(); ++r) {
    if (!sums_rows(program.results[r])) continue;
    const Op op = out[out.results[r].value].op;
    const NodeId of_row = out.add(row_reduction_of(op), {out[out.results[r].value].args[0]});
    out.results[r].value = out.add(op, {of_row}, of_row_values);
  }
  return out;
}

Result<AxisIndexing> fixed_axis(const Program& program, const Axis& axis, std::int64_t columns) {
  KnownLeaves known;
  if (columns) known.columns = columns;
  AxisIndexing made{.present = axis.present};
  for (auto [id, to] : {std::pair(axis.divide, &made.divide), std::pair(axis.wrap, &made.wrap)}) {
    if (id == no_node) continue;
    TRIREME_TRY(value, index_value(program, id, known, a_divisor));
    if (!value) return Error{Code::Unsupported, program.name + ": an index divisor of a sum is not a number yet"};
    *to = *value;
  }
  return made;
}

bool sums_own_row(const Program& program, const Output& result) {
  return result.value != no_node && is_column_reduction(program[result.value].op) && result.spread.row.present &&
         result.spread.row.plain();
}

Result<std::vector<SumClass>> sum_classes(const Program& program, std::int64_t columns) {
  std::vector<SumClass> classes, over_everything;
  for (std::size_t r = 0; r < program.results.size(); ++r) {
    const Output& result = program.results[r];
    if (result.value == no_node || !is_column_reduction(program[result.value].op) || sums_own_row(program, result))
      continue;
    TRIREME_TRY(row, fixed_axis(program, result.spread.row, columns));
    TRIREME_TRY(column, fixed_axis(program, result.spread.column, columns));
    SumClass made{.where = {row, column},
                  .op = row_reduction_of(program[result.value].op),
                  .of_groups = !result.spread.column.plain(),
                  .row_block = result.row_block};
    std::vector<SumClass>& list = made.over_everything() ? over_everything : classes;
    auto it = std::find_if(list.begin(), list.end(), [&](const SumClass& each) {
      return each.where == made.where && each.op == made.op && each.of_groups == made.of_groups;
    });
    if (it == list.end()) it = list.insert(it, std::move(made));
    it->results.push_back(static_cast<int>(r));
  }
  classes.insert(classes.end(), over_everything.begin(), over_everything.end());
  return classes;
}

std::optional<std::size_t> walked_class(const std::vector<SumClass>& classes) {
  std::optional<std::size_t> most;
  for (std::size_t c = 0; c < classes.size() && classes[c].by_blocks(); ++c)
    if (!most || classes[c].results.size() > classes[*most].results.size()) most = c;
  return most;
}

EntrySums entry_sums(const SumClass& sums, std::int64_t columns) {
  const AxisIndexing& row = sums.where.row;
  if (!row.present || row.wrap || sums.of_groups) return {};
  // Fewer entries have more blocks; and up to 128 rows, which the last entry may have, one each.
  const std::int64_t few = std::min<std::int64_t>(row.divide, 128), wide = sums.where.column.extent(columns);
  const std::int64_t blocks = sums.row_block ? (row.divide + sums.row_block - 1) / sums.row_block
                                             : std::max(contract::row_blocks(row.divide, wide), few);
  return {.rows = row.divide,
          .results = static_cast<int>(sums.results.size()),
          .row_block = sums.row_block,
          .levels = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(blocks - 1)))};
}

EntrySums entry_sums(const Program& program, std::int64_t columns) {
  const Result<std::vector<SumClass>> classes = sum_classes(program, columns);
  const std::optional<std::size_t> walked = classes ? walked_class(*classes) : std::nullopt;
  return walked ? entry_sums((*classes)[*walked], columns) : EntrySums{};
}

bool fixes_columns(const Program& program) {
  return !sum_classes(program, 0) || has(program, Op::Group) || has(program, Op::Rotate) ||
         std::any_of(program.operands.begin(), program.operands.end(),
                     [](const Operand& operand) { return !operand.constant && !operand.spread.column.plain(); }) ||
         std::any_of(program.results.begin(), program.results.end(),
                     [&](const Output& result) { return result.value != no_node && !result.spread.column.plain(); });
}

namespace {

bool has_result(const SumClass& sums, std::size_t r) {
  return std::find(sums.results.begin(), sums.results.end(), static_cast<int>(r)) != sums.results.end();
}

}  // namespace

Program keep_only(const Program& program, const SumClass& wanted) {
  Program out = program;
  for (std::size_t r = 0; r < out.results.size(); ++r)
    if (!has_result(wanted, r)) out.results[r].value = no_node;
  return out;
}

Program leave_out(const Program& program, const SumClass& unwanted) {
  Program out = program;
  for (std::size_t r = 0; r < out.results.size(); ++r)
    if (has_result(unwanted, r)) out.results[r].value = no_node;
  return out;
}

}  // namespace trireme
