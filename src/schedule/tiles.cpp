#include "schedule/tiles.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "ir/contract.hpp"
#include "schedule/row_lowering.hpp"
#include "schedule/shape.hpp"

namespace trireme {
namespace {

class TileLowering {
 public:
  TileLowering(const Program& program, const Config& config, Kernel& kernel)
      : program_(program), config_(config), b_(kernel) {}

  void run() {
    zero_ = b_.index(0);
    columns_ = b_.index(config_.columns);
    first_row_ = b_.argument(0);
    end_ = b_.argument(1);
    Reg turn = first_column_ = mine_ = zero_;
    if (!config_.simd) {
      const Reg block = b_.special(Do::BlockIndex), rows = b_.slot({Slot::What::RowBlock});
      first_row_ = b_.add(first_row_, b_.index(Do::IndexMul, block, rows));
      end_ = b_.index(Do::IndexMin, b_.add(first_row_, rows), end_);
      lane_ = b_.special(Do::ThreadLane);
      turn = b_.special(Do::ThreadGroup);
      first_column_ = b_.mul(lane_, config_.vector);
      mine_ = b_.mul(b_.add(b_.mul(turn, config_.lanes), lane_), value_bytes());
    }
    lay_out_scratch();
    for (std::size_t array = 0; array < program_.array_count(); ++array) {
      const Program::Array what = program_.array(array);
      if (!what.in_memory) continue;
      bases_[array] = b_.pointer_to(array);
      if (what.result || tiling_.row.contains(array)) strides_[array] = b_.slot_of(array, Slot::What::Stride);
    }
    b_.note("values of the whole kernel");
    for (int distance = config_.lanes / config_.tile; distance < config_.lanes; distance *= 2)
      upper_[distance] = config_.simd ? b_.lane_bit(distance, config_.lanes, zero_) : b_.lane_bit(distance);
    for (NodeId id = 0; id < program_.size(); ++id)
      if (used_[id] && !program_[id].by_column && !varies_[id]) value(id, {}, whole_);
    b_.when_less(first_row_, end_, [&] {
      // Of rows in several multiples of m whole ones are taken; in a single one, a part.
      before_ = b_.add(first_row_, -1);
      const Reg last_row = b_.add(end_, -1);
      const Reg first = b_.divide(first_row_, tiling_.m);
      last_quotient_ = b_.divide(last_row, tiling_.m);
      const Reg before_last = b_.index(Do::IndexSub, first_row_, b_.mul(last_quotient_, tiling_.m));
      const Reg begin = b_.index(Do::IndexMax, before_last, zero_);
      const Reg rows = b_.index(Do::IndexSub, end_, b_.mul(first, tiling_.m));
      end_remainder_ = b_.index(Do::IndexMin, rows, b_.index(tiling_.m));
      last_remainder_ = b_.add(end_remainder_, -1);
      const Reg own = b_.add(begin, b_.mul(turn, sides_.remainders));
      b_.count(first, b_.add(last_quotient_, 1), sides_.quotients, [&](Reg quotient) {
        b_.count(own, end_remainder_, std::int64_t{sides_.remainders} * config_.groups,
                 [&](Reg remainder) { tile(quotient, remainder); });
      });
    });
  }

 private:
  using Cell = Tiling::Cell;
  struct Stripe {
    Reg column;  // this thread's first
    std::int64_t width;
    int chunks, turns;  // the chunks of a turn are `turns` apart: one subtree
  };
  using Key = std::pair<NodeId, Cell>;
  using Known = std::map<Key, Values>;
  using Sink = std::function<void(int sum, const Values&)>;  // sums are numbered [cell][reduction]

  Type type() const { return *program_.compute; }
  std::int64_t value_bytes() const { return static_cast<std::int64_t>(bytes(type())); }
  std::int64_t chunk_columns() const { return std::int64_t{config_.lanes} * config_.vector; }
  int reductions() const { return static_cast<int>(tiling_.reductions.size()); }
  Op op_of(int sum) const { return program_[tiling_.reductions[sum % reductions()]].op; }
  std::int64_t total_at(int reduction, std::int64_t stripe = 0) const {
    return totals_at_ + (stripe * reductions() + reduction) * unit_;
  }
  Key key_of(NodeId id, Cell cell) const { return {id, tiling_.cell_of(id, cell)}; }

  // Partial sums of a stripe, on simd machines; then the stripes' totals.
  void lay_out_scratch() {
    unit_ = std::int64_t{config_.lanes} * (config_.simd ? 1 : config_.groups) * value_bytes();
    const std::int64_t turns = contract::stripe / chunk_columns() / config_.unroll;
    if (config_.simd) totals_at_ = turns > 1 ? turns * config_.tile * reductions() * unit_ : 0;
    b_.kernel().scratch_bytes = totals_at_ + tile_scratch_bytes(config_, value_bytes(), reductions());
    if (config_.simd) b_.slot_number({Slot::What::Pointer, scratch_array});
  }

  Reg entry(std::size_t array, const AxisIndexing& axis, Reg row) {
    if (axis.divide > 1) row = b_.divide(row, axis.divide);
    if (axis.wrap) row = b_.remainder(row, axis.wrap);
    const Reg place = b_.index(Do::IndexMul, row, strides_.at(array));
    return b_.pointer(bases_.at(array), place, static_cast<std::int64_t>(bytes(*program_.array(array).type)));
  }

  // Of a row, or of a cell: one number where it is the same for all columns, which stands for all of them.
  Values value(NodeId id, Cell cell, Known& known, Reg row = {}, const Leaf* columns = nullptr) {
    const Key key = key_of(id, cell);
    for (const Known* each : {&whole_, &known})
      if (const auto found = each->find(key); found != each->end()) return found->second;
    const Node& node = program_[id];
    Values made, args[3];
    for (int k = 0; k < node.arity; ++k) args[k] = value(node.args[k], cell, known, row, columns);
    auto arg = [&](int k, int e) { return k < node.arity ? args[k][args[k].size() == 1 ? 0 : e] : Reg{}; };
    if (node.op == Op::Operand) made = loaded(node, key, row, columns);
    else if (node.op == Op::RowIndex) made = {b_.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = row})};
    else
      for (int e = 0; e < (node.by_column ? config_.vector : 1); ++e)
        made.push_back(
            node.op == Op::ColumnIndex
                ? b_.into(Bank::Lane, {.code = Do::LaneColumn, .a = columns->column, .imm = columns->offset + e})
                : plain_value(b_, program_, node, columns_, arg(0, e), arg(1, e), arg(2, e)));
    return known[key] = names_.say(b_, id, std::move(made));
  }
  Values loaded(const Node& node, const Key& key, Reg row, const Leaf* columns) {
    const auto array = static_cast<std::size_t>(node.payload);
    const Type type = *program_.operands[array].type;
    if (!node.by_column) {
      const Reg at = tiling_.row.contains(array) ? entry(array, tiling_.row.at(array), row) : bases_.at(array);
      return {b_.into(Bank::Lane, {.code = Do::LoadOne, .type = type, .a = at})};
    }
    Instr load{.code = Do::Load, .type = type, .a = pointers_.at(key), .b = columns->column, .c = columns->mask};
    load.imm = columns->offset * static_cast<std::int64_t>(bytes(load.type));
    for (int e = 0; e < config_.vector; ++e) load.values.push_back(b_.fresh(Bank::Lane));
    b_.emit(load);
    return load.values;
  }

  bool is_there(const Stripe& stripe, int chunk) const { return chunk * chunk_columns() < stripe.width; }

  // Sums have the contract's order: chunks of a stripe, then lanes, then stripes. Here chunks first, first + step, ...:
  // those of a right half are added to their left as they are made, so that few are open.
  void add_chunks(const Stripe& stripe, int first, int step, const Sink& sink) {
    if (step == stripe.chunks) return terms(stripe, first, sink);
    std::vector<Values> low;
    add_chunks(stripe, first, 2 * step, [&](int, const Values& values) { low.push_back(values); });
    if (is_there(stripe, first + step))
      return add_chunks(stripe, first + step, 2 * step,
                        [&](int sum, const Values& high) { sink(sum, combine(b_, op_of(sum), low[sum], high)); });
    for (int sum = 0; sum < static_cast<int>(low.size()); ++sum) sink(sum, low[sum]);
  }

  void terms(const Stripe& stripe, int chunk, const Sink& sink) {
    Leaf columns{.column = stripe.column, .offset = chunk * chunk_columns()};
    if (columns.offset + chunk_columns() > stripe.width)
      columns.mask = b_.below(stripe.column, columns.offset, columns_);
    Known known;
    int sum = 0;
    for (Cell cell : sides_.cells())
      for (NodeId id : tiling_.reductions) {
        Values term = value(program_[id].args[0], cell, known, {}, &columns);
        if (!program_[program_[id].args[0]].by_column) term = Values(static_cast<std::size_t>(config_.vector), term[0]);
        sink(sum++, where_present(b_, program_[id].op, columns.mask, std::move(term)));
      }
  }

  // Of a stripe, by reduction, in the lanes of their cells.
  std::vector<Reg> totals_of(const Stripe& stripe) {
    std::vector<Values> sums;
    auto add_turn = [&](const Stripe& where, int first, Reg place) {
      add_chunks(where, first, stripe.turns, [&](int sum, const Values& values) {
        if (stripe.turns == 1) return sums.push_back(values);
        b_.store_scratch(type(), std::int64_t{sum} * stripe.turns * unit_, values[0], place);
      });
    };
    if (stripe.turns > 1 && stripe.width == contract::stripe) {
      const Reg end = b_.add(stripe.column, stripe.turns * chunk_columns()), place = b_.copy(zero_);
      b_.count(stripe.column, end, chunk_columns(), [&](Reg column) {
        add_turn({column, stripe.width, stripe.chunks, stripe.turns}, 0, place);
        b_.increase(place, unit_);
      });
    } else
      for (int turn = 0; turn < stripe.turns && is_there(stripe, turn); ++turn)
        add_turn(stripe, turn, b_.index(turn * unit_));
    auto sum_of = [&](int sum) {
      if (stripe.turns == 1) return sums[sum];
      return Values{*tree_of(b_, op_of(sum), stripe.turns, [&](int turn) -> std::optional<Reg> {
        if (!is_there(stripe, turn)) return std::nullopt;
        return b_.load_scratch(type(), (std::int64_t{sum} * stripe.turns + turn) * unit_);
      })};
    };
    std::vector<Reg> totals;
    for (int r = 0; r < reductions(); ++r) {
      // Each level of the tree, from lanes that are furthest apart on, leaves half of the lanes to one half of the
      // cells: lane t ends with cell t * tile / lanes.
      auto exchange = [&](const Values& low, const Values& high, int bit) {
        const int distance = bit * config_.lanes / config_.tile;
        return exchanged(b_, op_of(r), upper_.at(distance), low, high, distance);
      };
      Values values = halving_tree(
          config_.tile, [&](int cell) { return sum_of(cell * reductions() + r); }, exchange);
      for (int distance = config_.lanes / config_.tile / 2; distance >= 1; distance /= 2)
        for (Reg& each : values) each = combine(b_, op_of(r), each, b_.shuffle_xor(each, distance));
      totals.push_back(tree_of(b_, op_of(r), values));
    }
    return totals;
  }

  void tile(Reg quotient, Reg remainder) {
    b_.note("a tile of rows");
    // What lies beyond is computed again from the last row there is, and not stored.
    std::vector<Reg> quotients, remainders;
    for (int q = 0; q < sides_.quotients; ++q)
      quotients.push_back(b_.index(Do::IndexMin, b_.add(quotient, q), last_quotient_));
    for (int r = 0; r < sides_.remainders; ++r)
      remainders.push_back(b_.index(Do::IndexMin, b_.add(remainder, r), last_remainder_));
    pointers_.clear();
    for (Cell cell : sides_.cells())
      for (NodeId id : tiling_.loads) {
        const Key key = key_of(id, cell);
        if (pointers_.contains(key)) continue;
        const auto array = static_cast<std::size_t>(program_[id].payload);
        const auto [q, r] = key.second;
        pointers_[key] = q < 0 && r < 0 ? bases_.at(array) : entry(array, {true}, q < 0 ? remainders[r] : quotients[q]);
      }
    std::vector<Reg> totals;
    auto stripe = [&](Reg column, std::int64_t width, Reg place) {
      const auto chunks = static_cast<int>(next_power((width + chunk_columns() - 1) / chunk_columns()));
      const int turns = config_.simd ? std::max(1, chunks / config_.unroll) : 1;
      totals = totals_of({column, width, chunks, turns});
      for (int r = 0; place && r < reductions(); ++r) b_.store_scratch(type(), total_at(r), totals[r], place);
    };
    const std::int64_t full = config_.columns / contract::stripe, rest = config_.columns % contract::stripe;
    if (full + (rest != 0) == 1) stripe(first_column_, config_.columns, {});
    else {
      const Reg end = b_.add(first_column_, full * contract::stripe), place = b_.copy(mine_);
      b_.count(first_column_, end, contract::stripe, [&](Reg column) {
        stripe(column, contract::stripe, place);
        b_.increase(place, reductions() * unit_);
      });
      if (rest) stripe(end, rest, place);
      for (int r = 0; r < reductions(); ++r)
        totals[r] = neighbour_tree(b_, op_of(r), 0, full + (rest != 0),
                                   [&](std::int64_t k) { return b_.load_scratch(type(), total_at(r, k), mine_); });
    }
    finish(quotient, remainder, totals);
  }

  // Simd machines take the cells one after the other; each thread that has one takes its own.
  void finish(Reg quotient, Reg remainder, const std::vector<Reg>& totals) {
    const int lanes = config_.lanes / config_.tile;  // that have the same cell
    auto results = [&](Reg cell) {
      const Reg r = b_.add(remainder, b_.remainder(cell, sides_.remainders));
      b_.when_less(r, end_remainder_, [&] {
        const Reg q = b_.add(quotient, b_.divide(cell, sides_.remainders)), row = b_.add(b_.mul(q, tiling_.m), r);
        b_.when_less(before_, row, [&] {
          b_.when_less(row, end_, [&] {
            Known known;
            for (int k = 0; k < reductions(); ++k)
              known[key_of(tiling_.reductions[k], {})] = {
                  config_.simd ? b_.load_one_scratch(type(), total_at(k), {}, b_.mul(cell, lanes)) : totals[k]};
            for (std::size_t k = 0; k < program_.results.size(); ++k) {
              const Values values = value(program_.results[k].value, {}, known, row);
              const Reg at = entry(program_.array_of_result(k), {true}, row);
              b_.emit({.code = Do::StoreOne, .type = *program_.results[k].type, .a = at, .values = values});
            }
          });
        });
      });
    };
    if (!config_.simd) {
      const Reg place = b_.remainder(lane_, lanes), one = b_.index(1);
      return b_.when_less(place, one, [&] { results(b_.divide(lane_, lanes)); });
    }
    for (int k = 0; k < reductions(); ++k) b_.store_scratch(type(), total_at(k), totals[k]);
    b_.count(zero_, b_.index(config_.tile), 1, results);
  }

  const Program& program_;
  const Config& config_;
  const NodeNames names_{program_};
  const std::vector<bool> used_ = reachable(program_), varies_ = varying_by_row(program_);
  const Tiling tiling_ = *tiling_of(program_, config_.layout, config_.columns);
  const TileSides sides_ = tile_sides(config_.tile);
  KernelBuilder b_;
  std::map<std::size_t, Reg> bases_, strides_;  // by array
  Known whole_;                                 // values of all rows and columns
  std::map<Key, Reg> pointers_;                 // of the tile's rows, by operand's node
  std::map<int, Reg> upper_;                    // masks: lanes whose number has the bit
  Reg zero_, columns_, lane_, first_column_;
  Reg before_, first_row_, end_, last_quotient_, end_remainder_, last_remainder_;
  Reg mine_;                    // thread machines: bytes, of this thread's values in scratch
  std::int64_t unit_ = 0;       // bytes of a value of all lanes, or threads
  std::int64_t totals_at_ = 0;  // [stripe][reduction]
};

}  // namespace

void lower_tiles(const Program& program, const Config& config, Kernel& kernel) {
  TileLowering(program, config, kernel).run();
}

}  // namespace trireme
