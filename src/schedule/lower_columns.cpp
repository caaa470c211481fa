#include "schedule/lower_columns.hpp"

#include <fmt/format.h>

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

constexpr int most_levels = 12;      // of pair sums: more blocks than contract::row_blocks ever makes
constexpr int most_row_levels = 24;  // of the stripes of a row of row sums: 2^32 rows

// One class's sums; on simd machines a part of the kernel that all classes share.
class ColumnLowering {
 public:
  ColumnLowering(const Program& program, const SumClass& sums, int number, const Config& config, Kernel& kernel)
      : program_(program),
        sums_(sums),
        number_(number),
        layout_(config.layout),
        b_(kernel),
        simd_(kernel.simd),
        compact_(config.compact),
        lanes_(kernel.launch.lanes),
        width_(static_cast<int>(kernel.launch.columns_covered)),
        groups_(kernel.launch.groups),
        columns_fixed_(config.columns) {}

  // Simd machines: entries `first` to `last`, from this class's first one on; they are left counted from the next's.
  void run(Reg& first, Reg& last, bool more_follow) {
    begin();
    if (!first) first = b_.argument(0), last = b_.argument(1);
    const Reg mine = more_follow ? b_.index(Do::IndexMin, last, entries()) : last;
    Reg at = b_.copy(first);
    if (sums_.over_everything()) {
      b_.repeat_while_less(at, mine, [&] { row_of_rows(at); });
    } else if (!sums_.where.row.present) {
      along_entries(first, at, mine);
    } else {
      const Reg wide = this->wide();
      b_.repeat_while_less(at, mine, [&] {
        const Reg row = b_.index(Do::IndexDivide, at, wide), begins = b_.index(Do::IndexMul, row, wide);
        at_entries(row);
        const Reg from = b_.index(Do::IndexSub, at, begins);
        const Reg end = b_.index(Do::IndexMin, wide, b_.index(Do::IndexSub, mine, begins));
        along_entries(from, b_.copy(from), end);
        b_.assign(at, b_.add(begins, end));
      });
    }
    if (!more_follow) return;
    const Reg behind = entries();
    b_.emit({.code = Do::IndexSub, .dst = last, .a = last, .b = behind});
    b_.emit({.code = Do::IndexSub, .dst = first, .a = first, .b = behind});
    b_.when_less(first, zero_, [&] { b_.assign(first, zero_); });
  }

  void run() {
    begin();
    if (sums_.over_everything()) return row_of_rows_by_threads();
    Reg first = b_.argument(0), last = b_.argument(1);
    // Few columns have many partial rows: `width` threads lie side by side, and the other lanes of a group, or other
    // groups, take other rows. Each takes an aligned run of blocks whose length is a power of two: one subtree.
    Reg lane = b_.special(Do::ThreadLane), group = b_.special(Do::ThreadGroup);
    Reg column = lane, part = group;
    int parts = groups_ * lanes_ / width_;
    Reg writers = one_;  // groups of the part that writes
    if (width_ > lanes_) {
      const int side_by_side = width_ / lanes_;
      writers = b_.index(side_by_side);
      column = b_.add(lane, b_.mul(b_.index(Do::IndexAnd, group, side_by_side - 1), lanes_));
      part = b_.index(Do::IndexShiftRight, group, std::countr_zero(static_cast<unsigned>(side_by_side)));
    } else if (width_ < lanes_) {
      column = b_.index(Do::IndexAnd, lane, width_ - 1);
      const Reg first_part = b_.mul(group, lanes_ / width_);
      part = b_.add(first_part, b_.index(Do::IndexShiftRight, lane, std::countr_zero(static_cast<unsigned>(width_))));
    }
    Reg block_begins;
    if (sums_.where.row.present) {
      const std::int64_t filled = (columns() + width_ - 1) / width_ * width_;
      block_begins = b_.add(first, b_.mul(b_.special(Do::BlockIndex), width_));
      at_entries(b_.index(Do::IndexDivide, block_begins, filled));
      block_begins = b_.index(Do::IndexRemainder, block_begins, filled);
      last = b_.index(columns());
    }
    Reg run = b_.copy(one_), covered = b_.index(parts);
    b_.repeat_while_less(covered, blocks_, [&] {
      b_.emit({.code = Do::IndexAdd, .dst = run, .a = run, .b = run});
      b_.emit({.code = Do::IndexAdd, .dst = covered, .a = covered, .b = covered});
    });
    from_ = b_.index(Do::IndexMul, part, run);
    Reg at = block_begins ? b_.add(block_begins, column)
                          : b_.add(first, b_.add(b_.mul(b_.special(Do::BlockIndex), width_), column));
    std::vector<Reg> partials = {base_};
    for (std::size_t q = 1; q < results_.size(); ++q)
      partials.push_back(b_.pointer(base_, b_.mul(all_blocks_, static_cast<std::int64_t>(q)), value_bytes()));
    // All lanes of a group go the same way, so they count to the end of a whole run: blocks that do not exist are the
    // identity.
    auto value_of = [&](std::size_t q) {
      return [&, q](Reg k, Reg value) {
        Reg block = b_.add(from_, k);
        Reg left = b_.index(Do::IndexSub, blocks_, block);
        Reg mask = b_.below(at, 0, b_.index(Do::IndexMin, last, b_.index(Do::IndexMul, left, last)));
        Reg loaded = b_.fresh(Bank::Lane);
        load(partials[q], block, at, mask, loaded);
        b_.assign(value, b_.primitive(Op::Select, {mask, loaded, b_.number(identity_of(sums_.op))}));
      };
    };
    for (std::size_t q = 0; q < results_.size(); ++q) {
      Reg sum = pairs().sum(zero_, run, value_of(q));
      if (parts == 1) {
        pairs().settle_empty(blocks_, sum);
        store(q, sum, at, b_.below(at, 0, last));
        continue;
      }
      if (q > 0) b_.emit({.code = Do::Barrier});
      share(sum, b_.add(b_.mul(part, width_), column));
      b_.when_less(group, writers, [&] {
        // One part writes.
        Reg total = sum_of_parts(parts, column, width_);
        pairs().settle_empty(blocks_, total);
        store(q, total, at, b_.below(b_.add(at, b_.index(Do::IndexMul, part, last)), 0, last));
      });
    }
    if (parts > 1) b_.kernel().scratch_bytes = parts * width_ * value_bytes();
  }

 private:
  Type type() const { return *program_.compute; }
  std::int64_t value_bytes() const { return static_cast<std::int64_t>(bytes(type())); }
  int result(std::size_t q) const { return sums_.results[q]; }
  std::size_t array(std::size_t q) const { return program_.array_of_result(static_cast<std::size_t>(result(q))); }
  std::int64_t columns() const { return sums_.where.column.extent(columns_fixed_); }  // of entries, where it is fixed

  void begin() {
    zero_ = b_.index(0);
    one_ = b_.index(1);
    if (!sums_.over_everything() && !sums_.where.row.present) blocks_ = b_.slot({Slot::What::Blocks, number_});
    stride_ = b_.slot_of(partials_array(number_), Slot::What::Stride);
    base_ = b_.pointer_to(partials_array(number_));
    if (!sums_.over_everything())
      all_blocks_ = b_.index(Do::IndexMul, blocks_ ? blocks_ : trireme::all_blocks(b_, sums_, number_), stride_);
    for (std::size_t q = 0; q < sums_.results.size(); ++q) {
      results_.push_back(b_.pointer_to(array(q)));
      steps_.emplace_back();
      if (layout_.array(array(q)).strided) steps_.back() = column_steps(b_, layout_.array(array(q)), array(q));
    }
  }

  // Entries of a row of them, and in all.
  Reg wide() {
    const AxisIndexing& column = sums_.where.column;
    return column.present && column.plain() ? b_.slot({Slot::What::Columns}) : b_.index(column.extent(columns_fixed_));
  }
  Reg entries() {
    if (sums_.over_everything()) return b_.index(static_cast<std::int64_t>(results_.size()));
    if (!sums_.where.row.present) return wide();
    const Reg columns = wide();
    return b_.index(Do::IndexMul, columns, b_.slot(SumNumber::Entries, number_));
  }

  // The row of entries at hand: its blocks, and its place in the results.
  void at_entries(Reg row) {
    blocks_ = by_entry(b_, SumNumber::Blocks, number_, row);
    const Reg before = b_.index(Do::IndexMul, row, b_.slot(SumNumber::MostBlocks, number_));
    base_ = b_.pointer(base_, b_.index(Do::IndexMul, before, stride_), value_bytes());
    for (std::size_t q = 0; q < results_.size(); ++q)
      results_[q] = row_of_entries(b_, layout_.array(array(q)), array(q), stored(q), results_[q], row);
  }
  Type stored(std::size_t q) const { return *program_.results[result(q)].type; }

  PairSums pairs() { return {b_, zero_, most_levels, sums_.op}; }

  void load(Reg partials, Reg block, Reg column, Reg mask, Reg value) {
    Reg row = b_.pointer(partials, b_.index(Do::IndexMul, block, stride_), value_bytes());
    b_.emit({.code = Do::Load, .type = type(), .a = row, .b = column, .c = mask, .values = {value}});
  }

  // Thread machines: a number a part through scratch, and their sum.
  void share(Reg sum, Reg place) {
    b_.store_scratch(type(), 0, sum, {}, place);
    b_.emit({.code = Do::Barrier});
  }
  Reg sum_of_parts(int parts, Reg column, int width) {
    std::vector<Reg> sums;
    for (int p = 0; p < parts; ++p) sums.push_back(b_.load_scratch(type(), p * width * value_bytes(), {}, column));
    return pairs().tree(sums);
  }

  // Simd machines: entries from .. end of a row of them, by vectors; `at` counts them.
  void along_entries(Reg from, Reg at, Reg end) {
    // Whole vectors on their own only where masked loads go lane by lane (WebAssembly): it is twice the code.
    if (lanes_ * value_bytes() <= 16 && !compact_) {
      Reg count = b_.index(Do::IndexSub, end, from);
      Reg full = b_.index(Do::IndexSub, end, b_.index(Do::IndexAnd, count, lanes_ - 1));
      b_.repeat_while_less(at, full, [&] { all_sums(at, end, {}); });
    }
    b_.repeat_while_less(at, end, [&] { all_sums(at, end, lanes_ > 1 ? b_.below(at, 0, end) : Reg{}); });
  }

  // Of a vector of columns, on simd machines. The code of a sum stands here once, and is gone through for each result.
  void all_sums(Reg column, Reg end, Reg mask) {
    Reg partials = b_.pointer(base_, zero_, 1), q = b_.copy(zero_);
    b_.repeat_while_less(q, b_.index(static_cast<std::int64_t>(results_.size())), [&] {
      Reg sum = compact_ ? sum_in_place(partials, column, mask)
                         : pairs().sum(zero_, blocks_,
                                       [&](Reg block, Reg value) { load(partials, block, column, mask, value); });
      pairs().settle_empty(blocks_, sum);
      store_one_of(0, q, [&](std::size_t each) { store(each, sum, column, mask, end); });
      b_.emit({.code = Do::PointerAdd, .dst = partials, .a = partials, .b = all_blocks_, .imm = value_bytes()});
      b_.increase(q, 1);
    });
    b_.increase(column, lanes_);
  }

  // The partial sums are used up.
  Reg sum_in_place(Reg partials, Reg column, Reg mask) {
    const Reg total = b_.number(identity_of(sums_.op)), count = b_.copy(blocks_);
    const auto load_block = [&](Reg block) {
      const Reg value = b_.fresh(Bank::Lane);
      load(partials, block, column, mask, value);
      return value;
    };
    pair_in_place(b_, sums_.op, zero_, one_, count, load_block, [&](Reg block, Reg sum) {
      const Reg row = b_.pointer(partials, b_.index(Do::IndexMul, block, stride_), value_bytes());
      b_.emit({.code = Do::Store, .type = type(), .a = row, .b = column, .c = mask, .values = {sum}});
    });
    b_.when_less(zero_, count, [&] { load(partials, zero_, column, mask, total); });
    return total;
  }

  template <typename Store>
  void store_one_of(std::size_t from, Reg q, Store&& store) {
    if (from + 1 == results_.size()) return store(from);
    b_.when_less(
        q, b_.index(static_cast<std::int64_t>(from + 1)), [&] { store(from); },
        [&] { store_one_of(from + 1, q, store); });
  }

  // The one addition of a result that accumulates: what is there, and the sum.
  bool accumulates(std::size_t q) const { return program_.results[result(q)].accumulate; }
  Reg added_to_one(std::size_t q, Reg place, Reg mask, Reg total) {
    if (!accumulates(q)) return total;
    const Reg before =
        b_.into(Bank::Lane, {.code = Do::LoadOne, .type = stored(q), .a = results_[q], .b = place, .c = mask});
    return combine(b_, sums_.op, before, total);
  }

  void store(std::size_t q, Reg total, Reg column, Reg mask, Reg end = {}) {
    if (!steps_[q]) {
      if (accumulates(q)) {
        const Reg before = b_.fresh(Bank::Lane);
        b_.emit({.code = Do::Load, .type = stored(q), .a = results_[q], .b = column, .c = mask, .values = {before}});
        total = combine(b_, sums_.op, before, total);
      }
      b_.emit({.code = Do::Store, .type = stored(q), .a = results_[q], .b = column, .c = mask, .values = {total}});
    } else if (simd_) {
      one_by_one(q, total, column, end);
    } else {
      Reg place = stepped(b_, *steps_[q], column);
      total = added_to_one(q, place, mask, total);
      b_.emit({.code = Do::StoreOne, .type = stored(q), .a = results_[q], .b = place, .c = mask, .values = {total}});
    }
  }

  // Columns that do not lie side by side, through a vector of scratch.
  void one_by_one(std::size_t q, Reg total, Reg column, Reg end) {
    b_.slot_number({Slot::What::Pointer, scratch_array});
    b_.kernel().scratch_bytes = lanes_ * value_bytes();
    b_.store_scratch(type(), 0, total);
    Reg count = b_.index(Do::IndexMin, b_.index(Do::IndexSub, end, column), lanes_);
    Reg lane = b_.copy(zero_);
    b_.repeat_while_less(lane, count, [&] {
      Reg value = b_.load_one_scratch(type(), 0, {}, lane);
      Reg place = stepped(b_, *steps_[q], b_.add(column, lane));
      value = added_to_one(q, place, {}, value);
      b_.emit({.code = Do::StoreOne, .type = stored(q), .a = results_[q], .b = place, .values = {value}});
      b_.increase(lane, 1);
    });
  }

  // Over everything: the sums of the rows are one row, summed as rows are. `lane`: of thread machines.
  Reg stripe_of_rows(Reg pointer, Reg stripe, Reg lane, Reg rows) {
    const Reg begins = b_.mul(stripe, contract::stripe), from = lane ? b_.add(begins, lane) : begins;
    auto chunk = [&](int c) {
      Reg mask = b_.below(from, static_cast<std::int64_t>(c) * lanes_, rows), value = b_.fresh(Bank::Lane);
      b_.emit({.code = Do::Load,
               .type = type(),
               .a = pointer,
               .b = from,
               .c = mask,
               .imm = c * lanes_ * value_bytes(),
               .values = {value}});
      return b_.primitive(Op::Select, {mask, value, b_.number(identity_of(sums_.op))});
    };
    // The halving tree, depth first: first between chunks, then between lanes.
    const int chunks = static_cast<int>(contract::stripe) / lanes_;
    Reg sum = halving_tree(chunks, chunk, [&](Reg low, Reg high) { return combine(b_, sums_.op, low, high); });
    for (int s = lanes_ / 2; s >= 1; s /= 2) sum = combine(b_, sums_.op, sum, b_.shuffle_xor(sum, s));
    return sum;
  }
  Reg stripes_of(Reg rows) {
    return b_.index(Do::IndexShiftRight, b_.add(rows, contract::stripe - 1),
                    std::countr_zero(static_cast<std::uint64_t>(contract::stripe)));
  }
  // The same in loops, where the sums of the rows lie; they are used up. Totals of stripes stand before stripes to
  // come.
  Reg rows_in_place(Reg pointer, Reg rows, Reg stripes) {
    const auto load_at = [&](Reg place) {
      return b_.into(Bank::Lane, {.code = Do::LoadOne, .type = type(), .a = pointer, .b = place});
    };
    const auto store_at = [&](Reg place, Reg value) {
      b_.emit({.code = Do::StoreOne, .type = type(), .a = pointer, .b = place, .values = {value}});
    };
    const Reg stripe = b_.copy(zero_), begin = b_.copy(zero_);
    b_.repeat_while_less(stripe, stripes, [&] {
      const Reg half = b_.copy(b_.index(contract::stripe / 2));
      b_.repeat_while_less(zero_, half, [&] {
        const Reg low = b_.copy(begin), high = b_.copy(b_.index(Do::IndexAdd, begin, half));
        const Reg end = b_.index(Do::IndexMin, b_.index(Do::IndexAdd, high, half), rows);
        b_.repeat_while_less(high, end, [&] {
          const Reg value = load_at(low);
          store_at(low, combine(b_, sums_.op, value, load_at(high)));
          b_.increase(low, 1);
          b_.increase(high, 1);
        });
        b_.emit({.code = Do::IndexShiftRight, .dst = half, .a = half, .imm = 1});
      });
      store_at(stripe, load_at(begin));
      b_.increase(stripe, 1);
      b_.increase(begin, contract::stripe);
    });
    const Reg total = b_.number(identity_of(sums_.op)), count = b_.copy(stripes);
    pair_in_place(b_, sums_.op, zero_, one_, count, load_at, store_at);
    b_.when_less(zero_, count, [&] { b_.assign(total, load_at(zero_)); });
    return total;
  }
  PairSums row_pairs() { return {b_, zero_, most_row_levels, sums_.op}; }

  // Simd machines: result number `q`.
  void row_of_rows(Reg q) {
    const Reg rows = b_.slot(SumNumber::Rows, number_), stripes = stripes_of(rows);
    const Reg pointer = b_.pointer(base_, b_.index(Do::IndexMul, q, stride_), value_bytes());
    Reg total = compact_ ? rows_in_place(pointer, rows, stripes)
                         : row_pairs().sum_one_by_one(
                               zero_, stripes, [&](Reg stripe) { return stripe_of_rows(pointer, stripe, {}, rows); });
    row_pairs().settle_empty(rows, total);
    store_one_of(0, q, [&](std::size_t each) { store_total(each, total, {}); });
    b_.increase(q, 1);
  }

  void store_total(std::size_t q, Reg total, Reg mask) {
    total = added_to_one(q, {}, mask, total);
    b_.emit({.code = Do::StoreOne, .type = stored(q), .a = results_[q], .c = mask, .values = {total}});
  }

  // Thread machines: a block a result; each group takes an aligned run of stripes, a power of two of them: one subtree.
  void row_of_rows_by_threads() {
    const Reg lane = b_.special(Do::ThreadLane), group = b_.special(Do::ThreadGroup);
    const Reg block = b_.special(Do::BlockIndex);
    const Reg q = b_.add(b_.argument(0), block);
    const Reg rows = b_.slot(SumNumber::Rows, number_), stripes = stripes_of(rows);
    const Reg pointer = b_.pointer(base_, b_.index(Do::IndexMul, q, stride_), value_bytes());
    Reg run = b_.copy(one_), covered = b_.index(groups_);
    b_.repeat_while_less(covered, stripes, [&] {
      b_.emit({.code = Do::IndexAdd, .dst = run, .a = run, .b = run});
      b_.emit({.code = Do::IndexAdd, .dst = covered, .a = covered, .b = covered});
    });
    const Reg from = b_.index(Do::IndexMul, group, run);
    const Reg to = b_.index(Do::IndexMin, b_.add(from, run), stripes);
    const Reg sum = row_pairs().sum(
        from, to, [&](Reg stripe, Reg value) { b_.assign(value, stripe_of_rows(pointer, stripe, lane, rows)); });
    b_.emit({.code = Do::StoreOne,
             .type = type(),
             .space = Space::Scratch,
             .b = group,
             .c = b_.below(lane, 0, one_),
             .values = {sum}});
    b_.emit({.code = Do::Barrier});
    b_.when_less(group, one_, [&] {
      Reg total = sum_of_parts(groups_, zero_, 1);
      row_pairs().settle_empty(rows, total);
      store_one_of(0, q, [&](std::size_t each) { store_total(each, total, b_.below(lane, 0, one_)); });
    });
    b_.kernel().scratch_bytes = groups_ * value_bytes();
  }

  const Program& program_;
  const SumClass& sums_;
  const int number_;
  const Layout& layout_;
  KernelBuilder b_;
  bool simd_;
  bool compact_;
  int lanes_, width_, groups_;
  std::int64_t columns_fixed_;
  Reg zero_, one_, stride_, base_, from_;
  Reg blocks_;      // of the row of entries at hand
  Reg all_blocks_;  // values of one column result
  std::vector<Reg> results_;
  std::vector<std::optional<ColumnSteps>> steps_;
};

}  // namespace

std::vector<Kernel> lower_columns(const Program& program, const std::vector<SumClass>& sums, const Config& config,
                                  std::vector<Slot> slots) {
  std::vector<Kernel> kernels;
  auto add_kernel = [&]() -> Kernel& {
    Kernel& kernel = kernels.emplace_back();
    kernel.name = program.name + "_columns";
    if (kernels.size() > 1) kernel.name += fmt::format("_{}", kernels.size() - 1);
    kernel.simd = config.simd;
    kernel.compute = *program.compute;
    kernel.operands = static_cast<int>(program.operands.size());
    kernel.slots = std::move(slots);
    kernel.launch.lanes = config.lanes;
    kernel.launch.columns_covered = config.lanes;
    return kernel;
  };
  if (config.simd) {
    if (sums.empty()) return kernels;
    Kernel& kernel = add_kernel();
    Reg first, last;
    for (std::size_t c = 0; c < sums.size(); ++c)
      ColumnLowering(program, sums[c], static_cast<int>(c), config, kernel).run(first, last, c + 1 < sums.size());
    return kernels;
  }
  for (std::size_t c = 0; c < sums.size(); ++c) {
    if (sums[c].in_teams) continue;
    Kernel& kernel = add_kernel();
    kernel.launch.lanes = 32;
    kernel.launch.sums = static_cast<int>(c);
    if (sums[c].over_everything()) {
      kernel.launch.columns_covered = 1;
      kernel.launch.groups = 32;
    } else {
      // Eight partial rows are under way at a time; each further eight cost a latency. At 128 columns and 8192 partial
      // rows, 16 groups of 32 columns would each read 512; at 65536 columns there are 30.
      const Indexing& where = sums[c].where;
      const std::int64_t entries = where.column.extent(config.columns) * (where.row.wrap ? where.row.wrap : 1);
      // Of `i / d` no more than d rows share an entry.
      const std::int64_t sharing = where.row.present && !where.row.wrap ? where.row.divide : std::int64_t{1} << 40;
      std::int64_t rows = contract::row_blocks(sharing, entries);
      // Eight or fewer are one part's, and nothing is shared: blocks of four groups, side by side.
      kernel.launch.columns_covered = rows > 512 ? 8 : rows > 256 ? 16 : rows > 8 ? 32 : 128;
      kernel.launch.groups = rows > 256 ? 32 : rows > 8 ? std::clamp(static_cast<int>(next_power(rows / 8)), 1, 16) : 4;
    }
    ColumnLowering(program, sums[c], static_cast<int>(c), config, kernel).run();
    slots = kernel.slots;
  }
  return kernels;
}

}  // namespace trireme
