#include "schedule/tiles.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <tuple>

#include "ir/contract.hpp"
#include "schedule/nodes.hpp"
#include "schedule/shape.hpp"
#include "schedule/stages.hpp"

namespace trireme {
namespace {

constexpr int on_quotient = 1, on_remainder = 2;  // of i by m: what a value depends on

std::int64_t threads_of(const Config& config) { return config.simd ? config.lanes : config.lanes * config.groups; }

class TileLowering {
 public:
  TileLowering(const Program& program, const Config& config, Kernel& kernel)
      : program_(program), config_(config), b_(kernel) {
    for (const Stage& stage : stages_.sweeps)
      if (stage.reduces()) reductions_ = stage.reductions;
    find_dependences();
  }

  void run() {
    zero_ = b_.index(0);
    columns_ = b_.index(config_.columns);
    first_row_ = b_.argument(0);
    end_ = b_.argument(1);
    Reg turn = zero_;
    first_column_ = mine_ = zero_;
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
      if (what.result) rows_[array] = {true};
      else if (program_.operands[array].constant) continue;
      bases_[array] = b_.pointer_to(array);
      if (rows_.contains(array)) strides_[array] = b_.slot_of(array, Slot::What::Stride);
    }
    b_.note("values of the whole kernel");
    for (int distance = config_.lanes / config_.tile; distance < config_.lanes; distance *= 2)
      upper_[distance] = lanes_with(distance);
    for (NodeId id = 0; id < program_.size(); ++id)
      if (used_[id] && !program_[id].by_column && !varies_[id]) value(id, {}, whole_);
    b_.when_less(first_row_, end_, [&] {
      // Of rows in several multiples of m whole ones are taken; in a single one, a part.
      before_ = b_.add(first_row_, -1);
      last_row_ = b_.add(end_, -1);
      const Reg first = b_.divide(first_row_, m_);
      last_quotient_ = b_.divide(last_row_, m_);
      const Reg before_last = b_.index(Do::IndexSub, first_row_, b_.mul(last_quotient_, m_));
      const Reg begin = b_.index(Do::IndexMax, before_last, zero_);
      const Reg rows = b_.index(Do::IndexSub, end_, b_.mul(first, m_));
      end_remainder_ = b_.index(Do::IndexMin, rows, b_.index(m_));
      last_remainder_ = b_.add(end_remainder_, -1);
      const Reg own = b_.add(begin, b_.mul(turn, sides_.remainders));
      b_.count(first, b_.add(last_quotient_, 1), sides_.quotients, [&](Reg quotient) {
        b_.count(own, end_remainder_, std::int64_t{sides_.remainders} * config_.groups,
                 [&](Reg remainder) { tile(quotient, remainder); });
      });
    });
  }

 private:
  struct Cell {
    int quotient = 0, remainder = 0;  // in the tile
  };
  struct Columns {
    Reg first;
    std::int64_t offset = 0;
    Reg exist;  // Mask; none: they do
  };
  struct Stripe {
    Reg column;  // this thread's first
    std::int64_t width;
    int chunks, turns;  // the chunks of a turn are `turns` apart: one subtree
  };
  using Key = std::tuple<NodeId, int, int>;
  using Known = std::map<Key, Values>;
  using Sink = std::function<void(int sum, const Values&)>;  // sums are numbered [cell][reduction]

  std::int64_t value_bytes() const { return static_cast<std::int64_t>(bytes(*program_.compute)); }
  std::int64_t chunk_columns() const { return std::int64_t{config_.lanes} * config_.vector; }
  int reductions() const { return static_cast<int>(reductions_.size()); }
  Op op_of(int sum) const { return program_[reductions_[sum % reductions()]].op; }
  Key key_of(NodeId id, const Cell& cell) const {
    return {id, depends_[id] & on_quotient ? cell.quotient : -1, depends_[id] & on_remainder ? cell.remainder : -1};
  }
  template <typename Each>
  void each_cell(Each&& each) {
    for (int q = 0; q < sides_.quotients; ++q)
      for (int r = 0; r < sides_.remainders; ++r) each(Cell{q, r});
  }

  void find_dependences() {
    depends_.resize(program_.size());
    for (NodeId id = 0; id < program_.size(); ++id) {
      for (NodeId arg : program_[id]) depends_[id] |= depends_[arg];
      if (!used_[id] || program_[id].op != Op::Operand) continue;
      const auto array = static_cast<std::size_t>(program_[id].payload);
      const AxisIndexing row = *fixed_axis(program_, program_.operands[array].spread.row, config_.columns);
      if (!row.present) continue;
      rows_[array] = row;
      if (program_[id].by_column) depends_[id] = row.wrap ? on_remainder : on_quotient;
    }
  }

  // Partial sums of a stripe, on simd machines; then the stripes' totals.
  void lay_out_scratch() {
    unit_ = threads_of(config_) * value_bytes();
    const std::int64_t turns = contract::stripe / chunk_columns() / config_.unroll;
    if (config_.simd) totals_at_ = turns > 1 ? turns * config_.tile * reductions() * unit_ : 0;
    b_.kernel().scratch_bytes = totals_at_ + tile_scratch_bytes(config_, value_bytes(), reductions());
    if (config_.simd) b_.slot_number({Slot::What::Pointer, scratch_array});
  }
  Instr scratch(Do code, std::int64_t at, Reg more, Reg value) const {
    return {.code = code, .type = *program_.compute, .space = Space::Scratch, .a = more, .imm = at, .values = {value}};
  }
  Reg load_scratch(std::int64_t at, Reg more) {
    Reg value = b_.fresh(Bank::Lane);
    b_.emit(scratch(Do::Load, at, more, value));
    return value;
  }

  // ---- values ----

  Reg entry(std::size_t array, const AxisIndexing& axis, Reg row) {
    if (axis.divide > 1) row = b_.divide(row, axis.divide);
    if (axis.wrap) row = b_.remainder(row, axis.wrap);
    const Reg place = b_.index(Do::IndexMul, row, strides_.at(array));
    return b_.pointer(bases_.at(array), place, static_cast<std::int64_t>(bytes(*program_.array(array).type)));
  }

  // Of a row, or of a cell: one number where it is the same for all columns, which stands for all of them.
  Values value(NodeId id, const Cell& cell, Known& known, Reg row = {}, const Columns* columns = nullptr) {
    const Key key = key_of(id, cell);
    for (const Known* each : {&whole_, &known})
      if (const auto found = each->find(key); found != each->end()) return found->second;
    const Node& node = program_[id];
    Values made, args[3];
    for (int k = 0; k < node.arity; ++k) args[k] = value(node.args[k], cell, known, row, columns);
    auto arg = [&](int k, int e) { return k < node.arity ? args[k][args[k].size() == 1 ? 0 : e] : Reg{}; };
    for (int e = 0; e < (node.by_column ? config_.vector : 1); ++e)
      made.push_back([&] {
        switch (node.op) {
          case Op::Operand: return b_.fresh(Bank::Lane);
          case Op::Number: return number(b_, program_, node);
          case Op::Constant: return constant(b_, node);
          case Op::ColumnCount: return b_.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = columns_});
          case Op::RowIndex: return b_.into(Bank::Lane, {.code = Do::LaneFromIndex, .a = row});
          case Op::ColumnIndex:
            return b_.into(Bank::Lane, {.code = Do::LaneColumn, .a = columns->first, .imm = columns->offset + e});
          default: return primitive(b_, node, arg(0, e), arg(1, e), arg(2, e));
        }
      }());
    if (node.op == Op::Operand) {
      const auto array = static_cast<std::size_t>(node.payload);
      const Type type = *program_.operands[array].type;
      if (node.by_column)
        b_.emit({.code = Do::Load,
                 .type = type,
                 .a = pointers_.at(key),
                 .b = columns->first,
                 .c = columns->exist,
                 .imm = columns->offset * static_cast<std::int64_t>(bytes(type)),
                 .values = made});
      else
        b_.emit({.code = Do::LoadOne,
                 .type = type,
                 .dst = made[0],
                 .a = rows_.contains(array) ? entry(array, rows_.at(array), row) : bases_.at(array)});
    }
    return known[key] = names_.say(b_, id, std::move(made));
  }

  // ---- sums, in the contract's order: chunks of a stripe, then lanes, then stripes ----

  Values combined(Op op, Values low, const Values& high) {
    for (std::size_t e = 0; e < low.size(); ++e) low[e] = combine(b_, op, low[e], high[e]);
    return low;
  }
  bool is_there(const Stripe& stripe, int chunk) const { return chunk * chunk_columns() < stripe.width; }

  // The chunks first, first + step, ... of a stripe. Those of a right half are added to their left as they are made, so
  // that few are open.
  void add_chunks(const Stripe& stripe, int first, int step, const Sink& sink) {
    if (step == stripe.chunks) return terms(stripe, first, sink);
    std::vector<Values> low;
    add_chunks(stripe, first, 2 * step, [&](int, const Values& values) { low.push_back(values); });
    if (is_there(stripe, first + step))
      return add_chunks(stripe, first + step, 2 * step,
                        [&](int sum, const Values& high) { sink(sum, combined(op_of(sum), low[sum], high)); });
    for (int sum = 0; sum < static_cast<int>(low.size()); ++sum) sink(sum, low[sum]);
  }

  void terms(const Stripe& stripe, int chunk, const Sink& sink) {
    Columns columns{stripe.column, chunk * chunk_columns(), {}};
    if (columns.offset + chunk_columns() > stripe.width)
      columns.exist = b_.below(stripe.column, columns.offset, columns_);
    Known known;
    int sum = 0;
    each_cell([&](const Cell& cell) {
      for (NodeId id : reductions_) {
        Values term = value(program_[id].args[0], cell, known, {}, &columns);
        if (!program_[program_[id].args[0]].by_column) term = Values(static_cast<std::size_t>(config_.vector), term[0]);
        if (columns.exist) {
          const Reg none = b_.number(identity_of(program_[id].op));
          for (Reg& each : term) each = b_.primitive(Op::Select, {columns.exist, each, none});
        }
        sink(sum++, term);
      }
    });
  }

  // Lanes whose number has the bit.
  Reg lanes_with(int bit) {
    if (!config_.simd) return b_.lane_bit(bit);
    auto below = [&](int lane) { return b_.below(zero_, 0, b_.index(lane)); };
    Reg found;
    for (int first = bit; first < config_.lanes; first += 2 * bit) {
      const Reg end = below(first + bit), from = b_.primitive(Op::Not, {below(first)});
      const Reg lanes = b_.primitive(Op::And, {from, end});
      found = found ? b_.primitive(Op::Or, {found, lanes}) : lanes;
    }
    return found;
  }

  // The cells whose numbers agree with `cell` below `bit`, in lanes of their own. Each level of the tree, from lanes
  // that are furthest apart on, leaves half of the lanes to one half of the cells: lane t ends with cell t * tile /
  // lanes.
  Values gathered(const std::function<Values(int)>& sum_of, int reduction, int cell, int bit) {
    if (bit == config_.tile) return sum_of(cell * reductions() + reduction);
    const Values low = gathered(sum_of, reduction, cell, 2 * bit);
    const Values high = gathered(sum_of, reduction, cell + bit, 2 * bit);
    const int distance = bit * config_.lanes / config_.tile;
    const Reg upper = upper_.at(distance);
    Values kept;
    for (std::size_t e = 0; e < low.size(); ++e) {
      const Reg keep = b_.primitive(Op::Select, {upper, high[e], low[e]});
      const Reg send = b_.primitive(Op::Select, {upper, low[e], high[e]});
      kept.push_back(combine(b_, op_of(reduction), keep, b_.shuffle_xor(send, distance)));
    }
    return kept;
  }

  // Of a stripe, by reduction, in the lanes of their cells.
  std::vector<Reg> totals_of(const Stripe& stripe) {
    std::vector<Values> sums;
    auto add_turn = [&](const Stripe& where, int first, Reg place) {
      add_chunks(where, first, stripe.turns, [&](int sum, const Values& values) {
        if (stripe.turns == 1) return sums.push_back(values);
        b_.emit(scratch(Do::Store, std::int64_t{sum} * stripe.turns * unit_, place, values[0]));
      });
    };
    if (stripe.turns > 1 && stripe.width == contract::stripe) {
      const Reg end = b_.add(stripe.column, stripe.turns * chunk_columns()), place = b_.copy(zero_);
      b_.count(stripe.column, end, chunk_columns(), [&](Reg column) {
        add_turn({column, stripe.width, stripe.chunks, stripe.turns}, 0, place);
        b_.increase(place, unit_);
      });
    } else {
      for (int turn = 0; turn < stripe.turns && is_there(stripe, turn); ++turn)
        add_turn(stripe, turn, b_.index(turn * unit_));
    }
    auto sum_of = [&](int sum) {
      if (stripe.turns == 1) return sums[sum];
      return Values{*tree_of(b_, op_of(sum), stripe.turns, [&](int turn) -> std::optional<Reg> {
        if (!is_there(stripe, turn)) return std::nullopt;
        return load_scratch((std::int64_t{sum} * stripe.turns + turn) * unit_, {});
      })};
    };
    std::vector<Reg> totals;
    for (int r = 0; r < reductions(); ++r) {
      Values values = gathered(sum_of, r, 0, 1);
      for (int distance = config_.lanes / config_.tile / 2; distance >= 1; distance /= 2)
        for (Reg& each : values) each = combine(b_, op_of(r), each, b_.shuffle_xor(each, distance));
      const int count = static_cast<int>(values.size());
      totals.push_back(*tree_of(b_, op_of(r), count, [&](int e) { return std::optional(values[e]); }));
    }
    return totals;
  }

  // Neighbours in pairs, level by level: the largest power of two of stripes that leaves some is one side.
  Reg join(int reduction, std::int64_t first, std::int64_t count) {
    if (count == 1) return load_scratch(totals_at_ + (first * reductions() + reduction) * unit_, mine_);
    const auto left = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(count)) / 2);
    const Reg low = join(reduction, first, left), high = join(reduction, first + left, count - left);
    return combine(b_, op_of(reduction), low, high);
  }

  // ---- tiles ----

  void tile(Reg quotient, Reg remainder) {
    b_.note("a tile of rows");
    // What lies beyond is computed again from the last row there is, and not stored.
    std::vector<Reg> quotients, remainders;
    for (int q = 0; q < sides_.quotients; ++q)
      quotients.push_back(b_.index(Do::IndexMin, b_.add(quotient, q), last_quotient_));
    for (int r = 0; r < sides_.remainders; ++r)
      remainders.push_back(b_.index(Do::IndexMin, b_.add(remainder, r), last_remainder_));
    pointers_.clear();
    each_cell([&](const Cell& cell) {
      for (NodeId id = 0; id < program_.size(); ++id) {
        const Key key = key_of(id, cell);
        if (!used_[id] || program_[id].op != Op::Operand || !program_[id].by_column || pointers_.contains(key))
          continue;
        const auto array = static_cast<std::size_t>(program_[id].payload);
        const Reg row = depends_[id] == on_quotient ? quotients[cell.quotient] : remainders[cell.remainder];
        pointers_[key] = depends_[id] ? entry(array, {true}, row) : bases_.at(array);
      }
    });
    std::vector<Reg> totals;
    auto stripe = [&](Reg column, std::int64_t width, Reg place) {
      const auto chunks = static_cast<int>(next_power((width + chunk_columns() - 1) / chunk_columns()));
      totals = totals_of({column, width, chunks, std::max(1, chunks / config_.unroll)});
      for (int r = 0; place && r < reductions(); ++r)
        b_.emit(scratch(Do::Store, totals_at_ + r * unit_, place, totals[r]));
    };
    const std::int64_t full = config_.columns / contract::stripe, rest = config_.columns % contract::stripe;
    if (full + (rest != 0) == 1) {
      stripe(first_column_, config_.columns, {});
    } else {
      const Reg end = b_.add(first_column_, full * contract::stripe), place = b_.copy(mine_);
      b_.count(first_column_, end, contract::stripe, [&](Reg column) {
        stripe(column, contract::stripe, place);
        b_.increase(place, reductions() * unit_);
      });
      if (rest) stripe(end, rest, place);
      for (int r = 0; r < reductions(); ++r) totals[r] = join(r, 0, full + (rest != 0));
    }
    finish(quotient, remainder, totals);
  }

  // Simd machines take the cells one after the other; each thread that has one takes its own.
  void finish(Reg quotient, Reg remainder, const std::vector<Reg>& totals) {
    const int lanes = config_.lanes / config_.tile;  // that have the same cell
    auto store = [&](Reg cell, Reg row) {
      Known known;
      for (int k = 0; k < reductions(); ++k) {
        Reg total = totals[k];
        if (config_.simd)
          total = b_.into(Bank::Lane, {.code = Do::LoadOne,
                                       .type = *program_.compute,
                                       .space = Space::Scratch,
                                       .b = b_.mul(cell, lanes),
                                       .imm = totals_at_ + k * unit_});
        known[key_of(reductions_[k], {})] = {total};
      }
      for (std::size_t result : stages_.row_stores) {
        const Output& each = program_.results[result];
        const Values values = value(each.value, {}, known, row);
        const Reg at = entry(program_.array_of_result(result), {true}, row);
        b_.emit({.code = Do::StoreOne, .type = *each.type, .a = at, .values = values});
      }
    };
    auto results = [&](Reg cell) {
      const Reg r = b_.add(remainder, b_.remainder(cell, sides_.remainders));
      b_.when_less(r, end_remainder_, [&] {
        const Reg q = b_.add(quotient, b_.divide(cell, sides_.remainders)), row = b_.add(b_.mul(q, m_), r);
        b_.when_less(before_, row, [&] { b_.when_less(row, end_, [&] { store(cell, row); }); });
      });
    };
    if (!config_.simd) {
      const Reg place = b_.remainder(lane_, lanes), one = b_.index(1);
      return b_.when_less(place, one, [&] { results(b_.divide(lane_, lanes)); });
    }
    for (int k = 0; k < reductions(); ++k) b_.emit(scratch(Do::Store, totals_at_ + k * unit_, {}, totals[k]));
    b_.count(zero_, b_.index(config_.tile), 1, results);
  }

  const Program& program_;
  const Config& config_;
  const Stages stages_ = split_into_stages(program_);
  const NodeNames names_{program_};
  const std::vector<bool> used_ = reachable(program_), varies_ = varying_by_row(program_);
  const std::int64_t m_ = *tiled_by(program_, config_.layout, config_.columns);
  const TileSides sides_ = tile_sides(config_.tile);
  KernelBuilder b_;
  std::vector<NodeId> reductions_;
  std::vector<int> depends_;                    // by node
  std::map<std::size_t, AxisIndexing> rows_;    // by array, of those that have some
  std::map<std::size_t, Reg> bases_, strides_;  // by array
  Known whole_;                                 // values of all rows and columns
  std::map<Key, Reg> pointers_;                 // of the tile's rows, by operand's node
  std::map<int, Reg> upper_;                    // masks: lanes whose number has the bit
  Reg zero_, columns_, lane_, first_column_;
  Reg before_, first_row_, last_row_, end_, last_quotient_, end_remainder_, last_remainder_;
  Reg mine_;                    // thread machines: bytes, of this thread's values in scratch
  std::int64_t unit_ = 0;       // bytes of a value of all lanes, or threads
  std::int64_t totals_at_ = 0;  // [stripe][reduction]
};

}  // namespace

TileSides tile_sides(int sums) {
  const int bits = std::countr_zero(static_cast<unsigned>(sums));
  return {1 << bits / 2, 1 << (bits + 1) / 2};
}

std::int64_t tile_scratch_bytes(const Config& config, std::int64_t value_bytes, std::int64_t reductions) {
  const std::int64_t stripes = contract::stripes(config.columns);
  return config.simd || stripes > 1 ? stripes * reductions * threads_of(config) * value_bytes : 0;
}

std::optional<std::int64_t> tiled_by(const Program& program, const Layout& layout, std::int64_t columns) {
  if (layout.strided() || layout.jumps() || layout.backwards()) return std::nullopt;
  for (const Output& result : program.results)
    if (result.value == no_node || is_column_reduction(program[result.value].op) || !result.spread.row.present ||
        !result.spread.row.plain() || result.spread.column.present)
      return std::nullopt;
  const std::vector<bool> used = reachable(program), varies = varying_by_row(program);
  std::optional<std::int64_t> m;
  int kinds = 0;
  for (NodeId id = 0; id < program.size(); ++id) {
    const Node& node = program[id];
    if (!used[id]) continue;
    if (!is_plain_value(program, node)) return std::nullopt;
    for (NodeId arg : node)  // what a row has one of stands around its sums, not in them
      if ((node.by_column || is_row_reduction(node.op)) && !program[arg].by_column && varies[arg]) return std::nullopt;
    if (node.op != Op::Operand) continue;
    const Spread& spread = program.operands[node.payload].spread;
    if (spread.row.picked() || (spread.column.present && !spread.column.plain())) return std::nullopt;
    const Result<AxisIndexing> row = fixed_axis(program, spread.row, columns);
    if (!row) return std::nullopt;
    if (!spread.column.present || !row->present) continue;
    const std::int64_t own = row->wrap ? row->wrap : row->divide;
    if (own == 1 || (row->wrap && row->divide > 1) || m.value_or(own) != own) return std::nullopt;
    m = own;
    kinds |= row->wrap ? on_remainder : on_quotient;
  }
  int sweeps = 0;
  for (const Stage& stage : split_into_stages(program).sweeps) sweeps += stage.reduces();
  return sweeps == 1 && kinds == (on_quotient | on_remainder) ? m : std::nullopt;
}

void lower_tiles(const Program& program, const Config& config, Kernel& kernel) {
  TileLowering(program, config, kernel).run();
}

}  // namespace trireme
