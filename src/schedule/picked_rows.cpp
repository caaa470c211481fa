#include "schedule/picked_rows.hpp"

namespace trireme {

Reg RowLowering::both(Reg mask, Reg other) {
  if (!mask || !other) return mask ? mask : other;
  return b_.primitive(Op::And, {mask, other});
}

// Of an index that anybody may have given: is it one of 0 .. count - 1? And the nearest that is.
Reg RowLowering::is_inside(Reg index, Reg count) {
  const Reg below = mask_less(index, count)[0];
  return b_.primitive(Op::And, {below, mask_less(b_.index(-1), index)[0]});
}
Reg RowLowering::nearest_inside(Reg index, Reg count) {
  const Reg least = b_.index(Do::IndexMax, index, 0);
  return b_.index(Do::IndexMin, least, b_.add(count, -1));
}

// A plan refuses tables without rows: the nearest row is always there.
Reg RowLowering::picked_row(std::size_t array) {
  const Program::Array what = program_.array(array);
  Pick pick{.row = integer_of_row(what.spread.row.pick), .rows = b_.slot_of(array, Slot::What::Rows)};
  if (!what.result || !config_.simd) pick.inside = is_inside(pick.row, pick.rows);
  picks_[array] = pick;
  return nearest_inside(pick.row, pick.rows);
}

Reg RowLowering::inside_of(std::size_t operand) const {
  auto found = picks_.find(operand);
  return found == picks_.end() ? Reg{} : found->second.inside;
}

Values RowLowering::inside_or_0(std::size_t operand, Values values) {
  const Reg inside = inside_of(operand);
  if (!inside) return values;
  const Reg zero = b_.number(0);
  Values chosen;
  for (Reg value : values) chosen.push_back(b_.primitive(Op::Select, {inside, value, zero}));
  return chosen;
}

}  // namespace trireme
