// Tables whose rows an operand picks. Of a row outside the table nothing is read or written: pointers stay inside it,
// what is loaded there becomes 0, and stores are left out.
#pragma once
#include "schedule/row_lowering.hpp"

namespace trireme {

// store(mask): the mask that thread machines add to their own; simd machines go around the store.
template <typename Store>
void RowLowering::store_picked(std::size_t array, Store&& store) {
  const Pick& pick = picks_.at(array);
  if (!config_.simd) return store(pick.inside);
  b_.when_less(pick.row, pick.rows, [&] { b_.when_less(b_.index(-1), pick.row, [&] { store(Reg{}); }); });
}

}  // namespace trireme
