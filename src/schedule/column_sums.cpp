// Column sums while rows go by: a block of rows adds up in registers (unrolled stripes) or in its partial row (loops).
#include <algorithm>

#include "ir/contract.hpp"
#include "schedule/row_lowering.hpp"

namespace trireme {

void RowLowering::begin_column_sums(Reg block) {
  partial_rows_.clear();
  Reg base = b_.pointer({Slot::Kind::Partials}), stride = b_.slot({Slot::Kind::PartialStride});
  Reg blocks = b_.slot({Slot::Kind::Blocks});
  for (std::size_t q = 0; q < stages_.column_results.size(); ++q) {
    Reg place = q == 0 ? block : b_.add(block, b_.mul(blocks, static_cast<std::int64_t>(q)));
    partial_rows_.push_back(b_.pointer(base, b_.index(Do::IndexMul, place, stride), value_bytes()));
  }
  column_sums_.assign(stages_.column_results.size(), {});
  if (config_.stripes) {
    for (auto& sums : column_sums_) {
      sums.resize(row_leaves_.size());
      for (int stripe = 0; stripe < config_.stripes; ++stripe)
        for (int c = 0; c < chunks(); ++c)
          if (stripe * contract::stripe + static_cast<std::int64_t>(c) * config_.lanes * config_.vector <
              config_.columns)
            for (int e = 0; e < config_.vector; ++e) sums[stripe * chunks() + c].push_back(b_.number(-0.0));
    }
    return;
  }
  // In loops the sums live in the partial row itself; it starts as -0.0, the identity of addition.
  // A thread clears just the columns it will add to.
  Values none(config_.vector, b_.number(-0.0));
  auto clear = [&](Reg column, std::int64_t offset, Reg mask) {
    for (Reg partial : partial_rows_)
      b_.emit({.code = Do::Store,
               .type = *program_.compute,
               .a = partial,
               .b = column,
               .c = mask,
               .imm = offset * value_bytes(),
               .values = none});
  };
  Reg at = b_.copy(zero_);
  if (config_.simd) {
    Reg full = b_.index(Do::IndexSub, columns_, b_.index(Do::IndexAnd, columns_, config_.lanes - 1));
    b_.repeat_while_less(at, full, [&] {
      clear(at, 0, {});
      b_.increase(at, config_.lanes);
    });
    b_.when_less(at, columns_, [&] { clear(at, 0, b_.below(at, 0, columns_)); });
    return;
  }
  b_.repeat_while_less(at, stripes_, [&] {
    Reg column = b_.add(b_.mul(b_.add(at, group_), contract::stripe), thread_column_);
    for (int c = 0; c < chunks(); ++c) {
      std::int64_t offset = static_cast<std::int64_t>(c) * config_.lanes * config_.vector;
      clear(column, offset, b_.below(column, offset, columns_));
    }
    b_.increase(at, config_.groups);
  });
}

void RowLowering::add_to_columns(std::size_t result, const Leaf& leaf) {
  std::size_t q =
      std::find(stages_.column_results.begin(), stages_.column_results.end(), result) - stages_.column_results.begin();
  Values values = chunk(program_[program_.results[result].value].args[0], leaf);
  if (leaf.id >= 0) {
    Values& sums = column_sums_[q][leaf.id];
    // A team without a row adds nothing; columns that do not exist are never written.
    for (std::size_t e = 0; e < values.size(); ++e) {
      Reg value = values[e];
      if (state_.exists) value = b_.primitive(Op::Select, {leaf.mask, value, b_.number(-0.0)});
      b_.emit({.code = Do::Primitive, .op = Op::Add, .dst = sums[e], .a = sums[e], .b = value});
    }
    return;
  }
  Instr load{.code = Do::Load,
             .type = *program_.compute,
             .a = partial_rows_[q],
             .b = leaf.column,
             .c = leaf.mask,
             .imm = leaf.offset * value_bytes()};
  for (int e = 0; e < config_.vector; ++e) load.values.push_back(b_.fresh(Bank::Lane));
  Instr store = load;
  store.code = Do::Store;
  b_.emit(load);
  for (int e = 0; e < config_.vector; ++e) store.values[e] = b_.primitive(Op::Add, {load.values[e], values[e]});
  b_.emit(std::move(store));
}

void RowLowering::finish_column_sums() {
  if (!config_.stripes) return;
  for (int stripe = 0; stripe < config_.stripes; ++stripe)
    for (int c = 0; c < chunks(); ++c) {
      Leaf leaf = unrolled_leaf(stripe, c, state_);
      if (leaf.id < 0) continue;
      for (std::size_t q = 0; q < column_sums_.size(); ++q)
        b_.emit({.code = Do::Store,
                 .type = *program_.compute,
                 .a = partial_rows_[q],
                 .b = leaf.column,
                 .c = leaf.mask,
                 .imm = leaf.offset * value_bytes(),
                 .values = column_sums_[q][leaf.id]});
    }
}

}  // namespace trireme
