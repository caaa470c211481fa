#include "schedule/lower_columns.hpp"

#include <optional>

#include "schedule/kernel_builder.hpp"
#include "schedule/pair_sums.hpp"
#include "schedule/row_lowering.hpp"

namespace trireme {
namespace {

constexpr int most_levels = 12;  // of pair sums: more blocks than contract::row_blocks ever makes
constexpr int groups_of_a_block = 16;

class ColumnLowering {
 public:
  ColumnLowering(const Program& program, const Stages& stages, const Layout& layout, Kernel& kernel)
      : program_(program),
        stages_(stages),
        layout_(layout),
        b_(kernel),
        simd_(kernel.simd),
        lanes_(kernel.launch.lanes),
        groups_(kernel.launch.groups) {}

  void run() {
    zero_ = b_.index(0);
    one_ = b_.index(1);
    blocks_ = b_.slot({Slot::Kind::Blocks});
    stride_ = b_.slot({Slot::Kind::PartialStride});
    base_ = b_.pointer({Slot::Kind::Partials});
    for (std::size_t q = 0; q < stages_.column_results.size(); ++q) {
      int result = static_cast<int>(stages_.column_results[q]);
      results_.push_back(b_.pointer({Slot::Kind::ResultPointer, result}));
      steps_.emplace_back();
      if (layout_.result(result).strided) steps_.back() = column_steps(b_, layout_.result(result), result, true);
      Reg place = b_.mul(b_.index(Do::IndexMul, blocks_, stride_), static_cast<std::int64_t>(q));
      partials_.push_back(q == 0 ? base_ : b_.pointer(base_, place, value_bytes()));
    }
    Reg first = b_.argument(0), last = b_.argument(1);
    if (simd_) {
      from_ = zero_;
      to_ = blocks_;
      Reg at = b_.copy(first);
      // Whole vectors on their own only where masked loads go lane by lane (WebAssembly): it is twice the code.
      if (lanes_ * value_bytes() <= 16) {
        Reg count = b_.index(Do::IndexSub, last, first);
        Reg full = b_.index(Do::IndexSub, last, b_.index(Do::IndexAnd, count, lanes_ - 1));
        b_.repeat_while_less(at, full, [&] {
          for (std::size_t q = 0; q < results_.size(); ++q) store(q, sum_of_blocks(q, at, {}), at, {});
          b_.increase(at, lanes_);
        });
      }
      b_.repeat_while_less(at, last, [&] {
        Reg mask = b_.below(at, 0, last);
        for (std::size_t q = 0; q < results_.size(); ++q) store(q, sum_of_blocks(q, at, mask), at, mask);
        b_.increase(at, lanes_);
      });
      return;
    }
    // A group of lanes takes an aligned run of blocks whose length is a power of two: one subtree.
    Reg lane = b_.special(Do::ThreadLane), group = b_.special(Do::ThreadGroup);
    Reg run = b_.copy(one_), covered = b_.index(groups_);
    b_.repeat_while_less(covered, blocks_, [&] {
      b_.emit({.code = Do::IndexAdd, .dst = run, .a = run, .b = run});
      b_.emit({.code = Do::IndexAdd, .dst = covered, .a = covered, .b = covered});
    });
    from_ = b_.index(Do::IndexMul, group, run);
    to_ = b_.index(Do::IndexMin, b_.add(from_, run), blocks_);
    Reg at = b_.add(first, b_.add(b_.mul(b_.special(Do::BlockIndex), lanes_), lane));
    Reg mask = b_.below(at, 0, last);
    // Group 0 writes.
    Reg writer_end = b_.index(Do::IndexMin, last, b_.index(Do::IndexMul, b_.index(Do::IndexSub, one_, group), last));
    Reg writes = b_.below(at, 0, writer_end);
    for (std::size_t q = 0; q < results_.size(); ++q) {
      Reg sum = sum_of_blocks(q, at, mask);
      Reg place = b_.add(b_.mul(group, lanes_), lane);
      if (q > 0) b_.emit({.code = Do::Barrier});
      b_.emit({.code = Do::Store, .type = type(), .space = Space::Scratch, .b = place, .values = {sum}});
      b_.emit({.code = Do::Barrier});
      std::vector<Reg> sums;
      for (int g = 0; g < groups_; ++g) {
        sums.push_back(b_.fresh(Bank::Lane));
        b_.emit({.code = Do::Load,
                 .type = type(),
                 .space = Space::Scratch,
                 .b = lane,
                 .imm = g * lanes_ * value_bytes(),
                 .values = {sums.back()}});
      }
      store(q, pairs().tree(sums), at, writes);
    }
    b_.kernel().scratch_bytes = groups_ * lanes_ * value_bytes();
  }

 private:
  Type type() const { return *program_.compute; }
  std::int64_t value_bytes() const { return static_cast<std::int64_t>(bytes(type())); }

  PairSums pairs() { return {b_, zero_, most_levels}; }

  Reg sum_of_blocks(std::size_t q, Reg column, Reg mask) {
    return pairs().sum(from_, to_, [&](Reg block, Reg value) {
      Reg row = b_.pointer(partials_[q], b_.index(Do::IndexMul, block, stride_), value_bytes());
      b_.emit({.code = Do::Load, .type = type(), .a = row, .b = column, .c = mask, .values = {value}});
    });
  }

  void store(std::size_t q, Reg total, Reg column, Reg mask) {
    pairs().zero_where_empty(blocks_, total);
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
  int lanes_, groups_;
  Reg zero_, one_, blocks_, stride_, base_, from_, to_;
  std::vector<Reg> results_, partials_;
  std::vector<std::optional<ColumnSteps>> steps_;
};

}  // namespace

Kernel lower_columns(const Program& program, const Stages& stages, const Config& config, std::vector<Slot> slots) {
  Kernel kernel;
  kernel.name = program.name + "_columns";
  kernel.simd = config.simd;
  kernel.compute = *program.compute;
  kernel.slots = std::move(slots);
  kernel.launch.lanes = config.simd ? config.lanes : 32;
  kernel.launch.groups = config.simd ? 1 : groups_of_a_block;
  kernel.launch.columns_covered = kernel.launch.lanes;
  ColumnLowering(program, stages, config.layout, kernel).run();
  return kernel;
}

}  // namespace trireme
