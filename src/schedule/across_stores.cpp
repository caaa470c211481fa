// Results per element and per row, and sums over rows.
#include "schedule/across_lowering.hpp"

namespace trireme {

void AcrossLowering::store_elements(const std::vector<NodeId>& values) {
  b_.note("a sweep that stores");
  const std::vector<NodeId> nodes = needed(values);
  evaluate_rows(nodes);
  if (!stages_.column_results.empty()) return store_tiles(nodes);
  Reg at = b_.copy(zero_);
  b_.repeat_while_less(at, columns_, [&] {
    Column column = last_column(at, nodes);
    each_register([&] { store_column(column, nodes, {}); });
    b_.increase(at, 1);
  });
}

AcrossLowering::Column AcrossLowering::last_column(Reg at, const std::vector<NodeId>& nodes) {
  Column column = column_at(at, {}, nodes);
  for (std::size_t r = 0; r < program_.results.size(); ++r) {
    const std::size_t array = program_.array_of_result(r);
    if (spread_of(array).column.present && spread_of(array).row.present)
      column.entries[array] = entry(array, bases_.at(array), at);
  }
  if (config_.overlap) fetch(column, at, next_);
  else if (config_.prefetch) fetch(column, b_.add(at, 8), bases_);
  return column;
}

// `tile_place`: where the terms of sums over rows go, in their tiles.
void AcrossLowering::store_column(const Column& column, const std::vector<NodeId>& nodes, Reg tile_place) {
  Known known;
  for (NodeId id : nodes)
    if (per_element(id)) value(id, known, &column);
  for (const auto& [array, target] : column.entries)
    if (is_result(array))
      b_.emit({.code = Do::Store,
               .type = type_of(array),
               .hint = config_.streaming ? Hint::Streaming : Hint::None,
               .a = target,
               .b = row_,
               .c = mask_,
               .values = {value(program_.results[array - program_.operands.size()].value, known, &column)}});
  for (std::size_t q = 0; q < stages_.column_results.size(); ++q) {
    const Node& reduction = program_[program_.results[stages_.column_results[q]].value];
    Reg term = value(reduction.args[0], known, &column);
    if (mask_) term = b_.primitive(Op::Select, {mask_, term, b_.number(identity_of(row_reduction_of(reduction.op)))});
    store_scratch(tile_of(q), term, tile_place);
  }
}

// Sums over rows want rows one after the other: terms of as many columns as there are lanes are a tile, which is
// transposed and then added row by row to the block's partial sums.
void AcrossLowering::store_tiles(const std::vector<NodeId>& nodes) {
  Reg tile = b_.copy(zero_);
  b_.repeat_while_less(tile, columns_, [&] {
    Reg end = b_.index(Do::IndexMin, b_.add(tile, config_.lanes), columns_);
    Reg at = b_.copy(tile), place = b_.copy(zero_);
    b_.repeat_while_less(at, end, [&] {
      Column column = last_column(at, nodes);
      each_register([&] { store_column(column, nodes, place); });
      b_.increase(at, 1);
      b_.increase(place, turn_bytes());
    });
    each_register([&] {
      for (std::size_t q = 0; q < stages_.column_results.size(); ++q) add_tile(q, tile);
    });
    b_.increase(tile, config_.lanes);
  });
}

// Partial rows have room for whole registers; columns that do not exist hold whatever the tile did.
void AcrossLowering::add_tile(std::size_t sum, Reg column) {
  const Op op = row_reduction_of(program_[program_.results[stages_.column_results[sum]].value].op);
  Values terms;
  for (int c = 0; c < config_.lanes; ++c) terms.push_back(load_scratch(tile_of(sum) + c * turn_bytes()));
  terms = transposed(std::move(terms));
  Reg row = b_.add(turn_, row_), row_block = b_.slot({Slot::What::RowBlock});
  Reg block = b_.index(Do::IndexDivide, row, row_block);
  Reg past = b_.index(Do::IndexSub, row, b_.index(Do::IndexMul, block, row_block));
  Reg blocks = b_.slot({Slot::What::Blocks}), stride = b_.slot_of(partials_array(0), Slot::What::Stride);
  Reg place = b_.add(block, b_.mul(blocks, static_cast<std::int64_t>(sum)));
  const Reg partials = b_.pointer_to(partials_array(0));
  Reg partial =
      b_.pointer(partials, b_.index(Do::IndexMul, place, stride), static_cast<std::int64_t>(bytes(*program_.compute)));
  Instr access{.code = Do::Load, .type = *program_.compute, .a = partial, .b = column};
  Reg total = b_.number(identity_of(op));
  b_.when_less(zero_, past, [&] {
    access.values = {total};
    b_.emit(access);
  });
  for (Reg term : terms)
    b_.emit({.code = Do::Primitive, .op = combination_of(op), .dst = total, .a = total, .b = term});
  access.code = Do::Store;
  access.values = {total};
  b_.emit(access);
}

// A square of registers: halves are exchanged, then quarters, down to single lanes.
Values AcrossLowering::transposed(Values values) {
  Reg lanes = b_.into(Bank::Lane, {.code = Do::LaneColumn, .a = zero_});
  for (int half = config_.lanes / 2; half >= 1; half /= 2) {
    // Lanes whose number has the bit: of lane / (2 half) the fraction is at least a half.
    Reg part = b_.primitive(Op::Mul, {lanes, b_.number(0.5 / half)});
    Reg upper =
        b_.primitive(Op::LessEqual, {b_.number(0.5), b_.primitive(Op::Sub, {part, b_.primitive(Op::Floor, {part})})});
    for (int k = 0; k < config_.lanes; ++k) {
      if (k & half) continue;
      Reg low = values[k], high = values[k + half];
      values[k] = b_.primitive(Op::Select, {upper, b_.shuffle_xor(high, half), low});
      values[k + half] = b_.primitive(Op::Select, {upper, high, b_.shuffle_xor(low, half)});
    }
  }
  return values;
}

void AcrossLowering::store_rows() {
  if (stages_.row_stores.empty()) return;
  b_.note("results per row");
  std::vector<NodeId> values;
  for (std::size_t r : stages_.row_stores) values.push_back(program_.results[r].value);
  each_register([&] {
    Known known;
    for (NodeId id : needed(values)) value(id, known, nullptr);
    for (std::size_t r : stages_.row_stores)
      b_.emit({.code = Do::Store,
               .type = *program_.results[r].type,
               .a = bases_.at(program_.array_of_result(r)),
               .b = row_,
               .c = mask_,
               .values = {value(program_.results[r].value, known, nullptr)}});
  });
}

}  // namespace trireme
