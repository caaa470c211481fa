#include "schedule/lower_columns.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "ir/contract.hpp"
#include "schedule/kernel_builder.hpp"
#include "schedule/pair_sums.hpp"
#include "schedule/row_lowering.hpp"
#include "schedule/shape.hpp"

namespace trireme {
namespace {

constexpr int most_levels = 12;  // of pair sums: more blocks than contract::row_blocks ever makes

class ColumnLowering {
 public:
  ColumnLowering(const Program& program, const Stages& stages, const Layout& layout, Kernel& kernel)
      : program_(program),
        stages_(stages),
        layout_(layout),
        b_(kernel),
        simd_(kernel.simd),
        lanes_(kernel.launch.lanes),
        width_(static_cast<int>(kernel.launch.columns_covered)),
        groups_(kernel.launch.groups) {}

  void run() {
    zero_ = b_.index(0);
    one_ = b_.index(1);
    blocks_ = b_.slot({Slot::Kind::Blocks});
    stride_ = b_.slot({Slot::Kind::PartialStride});
    base_ = b_.pointer({Slot::Kind::Partials});
    all_blocks_ = b_.index(Do::IndexMul, blocks_, stride_);
    for (std::size_t q = 0; q < stages_.column_results.size(); ++q) {
      int result = static_cast<int>(stages_.column_results[q]);
      results_.push_back(b_.pointer({Slot::Kind::ResultPointer, result}));
      steps_.emplace_back();
      if (layout_.result(result).strided) steps_.back() = column_steps(b_, layout_.result(result), result, true);
    }
    Reg first = b_.argument(0), last = b_.argument(1);
    if (simd_) {
      Reg at = b_.copy(first);
      // Whole vectors on their own only where masked loads go lane by lane (WebAssembly): it is twice the code.
      if (lanes_ * value_bytes() <= 16) {
        Reg count = b_.index(Do::IndexSub, last, first);
        Reg full = b_.index(Do::IndexSub, last, b_.index(Do::IndexAnd, count, lanes_ - 1));
        b_.repeat_while_less(at, full, [&] { all_sums(at, {}); });
      }
      b_.repeat_while_less(at, last, [&] { all_sums(at, b_.below(at, 0, last)); });
      return;
    }
    // Few columns have many partial rows: `width` lanes lie side by side, and the other lanes of a group take other
    // rows. Each takes an aligned run of blocks whose length is a power of two: one subtree.
    Reg lane = b_.special(Do::ThreadLane), group = b_.special(Do::ThreadGroup);
    Reg column = lane, part = group;
    int parts = groups_ * lanes_ / width_;
    if (width_ < lanes_) {
      column = b_.index(Do::IndexAnd, lane, width_ - 1);
      const Reg first_part = b_.mul(group, lanes_ / width_);
      part = b_.add(first_part, b_.index(Do::IndexShiftRight, lane, std::countr_zero(static_cast<unsigned>(width_))));
    }
    Reg run = b_.copy(one_), covered = b_.index(parts);
    b_.repeat_while_less(covered, blocks_, [&] {
      b_.emit({.code = Do::IndexAdd, .dst = run, .a = run, .b = run});
      b_.emit({.code = Do::IndexAdd, .dst = covered, .a = covered, .b = covered});
    });
    from_ = b_.index(Do::IndexMul, part, run);
    Reg at = b_.add(first, b_.add(b_.mul(b_.special(Do::BlockIndex), width_), column));
    std::vector<Reg> partials = {base_};
    for (std::size_t q = 1; q < results_.size(); ++q)
      partials.push_back(b_.pointer(base_, b_.mul(all_blocks_, static_cast<std::int64_t>(q)), value_bytes()));
    // All lanes of a group go the same way, so they count to the end of a whole run: blocks that do not exist are -0.0.
    auto value_of = [&](std::size_t q) {
      return [&, q](Reg k, Reg value) {
        Reg block = b_.add(from_, k);
        Reg left = b_.index(Do::IndexSub, blocks_, block);
        Reg mask = b_.below(at, 0, b_.index(Do::IndexMin, last, b_.index(Do::IndexMul, left, last)));
        Reg loaded = b_.fresh(Bank::Lane);
        load(partials[q], block, at, mask, loaded);
        b_.assign(value, b_.primitive(Op::Select, {mask, loaded, b_.number(-0.0)}));
      };
    };
    for (std::size_t q = 0; q < results_.size(); ++q) {
      Reg sum = pairs().sum(zero_, run, value_of(q));
      if (q > 0) b_.emit({.code = Do::Barrier});
      b_.emit({.code = Do::Store,
               .type = type(),
               .space = Space::Scratch,
               .b = b_.add(b_.mul(part, width_), column),
               .values = {sum}});
      b_.emit({.code = Do::Barrier});
      b_.when_less(group, one_, [&] {
        std::vector<Reg> sums;
        for (int p = 0; p < parts; ++p) {
          sums.push_back(b_.fresh(Bank::Lane));
          b_.emit({.code = Do::Load,
                   .type = type(),
                   .space = Space::Scratch,
                   .b = column,
                   .imm = p * width_ * value_bytes(),
                   .values = {sums.back()}});
        }
        // One part writes.
        Reg total = pairs().tree(sums);
        pairs().zero_where_empty(blocks_, total);
        store(q, total, at, b_.below(b_.add(at, b_.index(Do::IndexMul, part, last)), 0, last));
      });
    }
    b_.kernel().scratch_bytes = parts * width_ * value_bytes();
  }

 private:
  Type type() const { return *program_.compute; }
  std::int64_t value_bytes() const { return static_cast<std::int64_t>(bytes(type())); }

  PairSums pairs() { return {b_, zero_, most_levels}; }

  void load(Reg partials, Reg block, Reg column, Reg mask, Reg value) {
    Reg row = b_.pointer(partials, b_.index(Do::IndexMul, block, stride_), value_bytes());
    b_.emit({.code = Do::Load, .type = type(), .a = row, .b = column, .c = mask, .values = {value}});
  }

  // Of a vector of columns, on simd machines. The code of a sum stands here once, and is gone through for each result.
  void all_sums(Reg column, Reg mask) {
    Reg partials = b_.pointer(base_, zero_, 1), q = b_.copy(zero_);
    b_.repeat_while_less(q, b_.index(static_cast<std::int64_t>(results_.size())), [&] {
      Reg sum = pairs().sum(zero_, blocks_, [&](Reg block, Reg value) { load(partials, block, column, mask, value); });
      pairs().zero_where_empty(blocks_, sum);
      store_one_of(0, q, sum, column, mask);
      b_.emit({.code = Do::PointerAdd, .dst = partials, .a = partials, .b = all_blocks_, .imm = value_bytes()});
      b_.increase(q, 1);
    });
    b_.increase(column, lanes_);
  }

  void store_one_of(std::size_t from, Reg q, Reg sum, Reg column, Reg mask) {
    if (from + 1 == results_.size()) return store(from, sum, column, mask);
    b_.when_less(
        q, b_.index(static_cast<std::int64_t>(from + 1)), [&] { store(from, sum, column, mask); },
        [&] { store_one_of(from + 1, q, sum, column, mask); });
  }

  void store(std::size_t q, Reg total, Reg column, Reg mask) {
    Type stored = *program_.results[stages_.column_results[q]].type;
    if (!steps_[q]) {
      b_.emit({.code = Do::Store, .type = stored, .a = results_[q], .b = column, .c = mask, .values = {total}});
    } else if (simd_) {
      one_by_one(q, stored, total, column);
    } else {
      Reg place = stepped(b_, *steps_[q], column);
      b_.emit({.code = Do::StoreOne, .type = stored, .a = results_[q], .b = place, .c = mask, .values = {total}});
    }
  }

  // Columns that do not lie side by side, through a vector of scratch.
  void one_by_one(std::size_t q, Type stored, Reg total, Reg column) {
    b_.slot_number({Slot::Kind::Scratch});
    b_.kernel().scratch_bytes = lanes_ * value_bytes();
    b_.emit({.code = Do::Store, .type = type(), .space = Space::Scratch, .values = {total}});
    Reg count = b_.index(Do::IndexMin, b_.index(Do::IndexSub, b_.argument(1), column), lanes_);
    Reg lane = b_.copy(zero_);
    b_.repeat_while_less(lane, count, [&] {
      Reg value = b_.into(Bank::Lane, {.code = Do::LoadOne, .type = type(), .space = Space::Scratch, .b = lane});
      Reg place = stepped(b_, *steps_[q], b_.add(column, lane));
      b_.emit({.code = Do::StoreOne, .type = stored, .a = results_[q], .b = place, .values = {value}});
      b_.increase(lane, 1);
    });
  }

  const Program& program_;
  const Stages& stages_;
  const Layout& layout_;
  KernelBuilder b_;
  bool simd_;
  int lanes_, width_, groups_;
  Reg zero_, one_, blocks_, stride_, base_, from_;
  Reg all_blocks_;  // values of one column result
  std::vector<Reg> results_;
  std::vector<std::optional<ColumnSteps>> steps_;
};

}  // namespace

Kernel lower_columns(const Program& program, const Stages& stages, const Config& config, std::vector<Slot> slots) {
  Kernel kernel;
  kernel.name = program.name + "_columns";
  kernel.simd = config.simd;
  kernel.compute = *program.compute;
  kernel.slots = std::move(slots);
  kernel.launch.lanes = config.lanes;
  kernel.launch.columns_covered = config.lanes;
  if (!config.simd) {
    // Eight partial rows are under way at a time; each further eight cost a latency. At 128 columns and 8192 partial
    // rows, 16 groups of 32 columns would each read 512; at 65536 columns there are 30.
    std::int64_t rows = contract::row_blocks(std::int64_t{1} << 40, config.columns);
    kernel.launch.lanes = 32;
    kernel.launch.columns_covered = rows > 512 ? 8 : rows > 256 ? 16 : 32;
    kernel.launch.groups = rows > 256 ? 32 : std::clamp(static_cast<int>(next_power(rows / 8)), 1, 16);
  }
  ColumnLowering(program, stages, config.layout, kernel).run();
  return kernel;
}

}  // namespace trireme
