#include "schedule/picked_rows.hpp"

namespace trireme {

Reg RowLowering::both(Reg mask, Reg other) {
  if (!mask || !other) return mask ? mask : other;
  return b_.primitive(Op::And, {mask, other});
}

// A plan refuses tables without rows: the clamped row is always there.
Reg RowLowering::picked_row(std::size_t array) {
  const Program::Array what = program_.array(array);
  Pick pick{.row = integer_of_row(what.spread.row.pick), .rows = b_.slot_of(array, Slot::What::Rows)};
  if (!what.result || !config_.simd)
    pick.inside = both(mask_less(pick.row, pick.rows)[0], mask_less(b_.index(-1), pick.row)[0]);
  picks_[array] = pick;
  return b_.index(Do::IndexMin, b_.index(Do::IndexMax, pick.row, 0), b_.add(pick.rows, -1));
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
