// The state of lowering one program to a kernel whose lanes are rows. across.cpp plans and walks, across_sums.cpp sums
// along rows, across_stores.cpp writes results and sums over rows.
#pragma once
#include <map>
#include <set>
#include <vector>

#include "ir/contract.hpp"
#include "schedule/row_lowering.hpp"

namespace trireme {

// A *turn* takes some registers' worth of rows through all sweeps. A sweep goes from column to column, and at each from
// register to register: neighbours in memory. Values per row wait in scratch, one number a row of the turn.
class AcrossLowering {
 public:
  AcrossLowering(const Program& program, const Config& config, Kernel& kernel)
      : program_(program),
        config_(config),
        stages_(split_into_stages(program, std::vector<bool>(program.results.size(), true))),  // stores come last
        used_(reachable(program)),
        varies_(varying_by_row(program)),
        b_(kernel),
        most_turns_{config.rows, config.unroll, true} {}
  void run();

 private:
  // Most turns take `config.rows` registers. Rows that are left over take one each, with a mask and in short code.
  struct Turn {
    int registers, leaves;  // leaves: columns that become one partial sum
    bool whole;             // all rows exist
  };
  struct Column {
    Reg index, exists;                   // exists: Mask; none: it does
    std::map<std::size_t, Reg> entries;  // pointers: of arrays per element to the turn's first row
    std::map<std::size_t, Reg> ahead;    // the same, of a column to come
    std::map<NodeId, Reg> values;        // the same in every row
  };
  using Known = std::map<NodeId, Reg>;
  enum class Level { Whole, Column, Row, Element };

  Level level(NodeId id) const {
    if (program_[id].by_column) return varies_[id] ? Level::Element : Level::Column;
    return varies_[id] ? Level::Row : Level::Whole;
  }
  // Conditions do not fit scratch: those per row are made again for every element.
  bool per_element(NodeId id) const {
    return level(id) == Level::Element || (level(id) == Level::Row && is_condition(program_[id].op));
  }
  std::vector<NodeId> needed(const std::vector<NodeId>& roots) const;
  std::vector<NodeId> rows_for(const std::vector<NodeId>& nodes) const;
  std::vector<NodeId> roots_of(const Stage& stage) const;
  std::vector<NodeId> terms() const;

  void lay_out_scratch();
  void evaluate_whole();
  void walk();
  void turn(const Turn& turn);
  void evaluate_rows(const std::vector<NodeId>& nodes);
  void reduce(const Stage& stage);
  void reduce_stripe(const Stage& stage, const std::vector<NodeId>& nodes, Reg first);
  void join_stripes(const Stage& stage);
  void store_elements(const std::vector<NodeId>& values);
  Column last_column(Reg at, const std::vector<NodeId>& nodes);
  void store_column(const Column& column, const std::vector<NodeId>& nodes, Reg tile_place);
  void store_tiles(const std::vector<NodeId>& nodes);
  void add_tile(std::size_t sum, Reg column);
  Values transposed(Values values);
  void store_rows();

  template <typename Body>
  void each_register(Body&& body);
  Reg first_entry(std::size_t array, Reg row, Reg* rows);
  Reg entry(std::size_t array, Reg first, Reg column);
  Column column_at(Reg index, Reg exists, const std::vector<NodeId>& nodes);
  void fetch(Column& column, Reg index, const std::map<std::size_t, Reg>& rows);
  Reg value(NodeId id, Known& known, const Column* column);
  Reg evaluate(NodeId id, Known& known, const Column* column);
  // Of the register at hand, `more` bytes on.
  Reg load_scratch(std::int64_t at, Reg more = {}) { return b_.load_scratch(*program_.compute, at, more, row_); }
  void store_scratch(std::int64_t at, Reg value, Reg more = {}) {
    b_.store_scratch(*program_.compute, at, value, more, row_);
  }

  std::int64_t rows_of(const Turn& turn) const { return std::int64_t{turn.registers} * config_.lanes; }
  std::int64_t bytes_of(const Turn& turn) const {  // of a value for each of its rows
    return rows_of(turn) * static_cast<std::int64_t>(bytes(*program_.compute));
  }
  std::int64_t turn_bytes() const { return bytes_of(at_hand_); }
  std::int64_t tile_of(std::size_t sum) const {  // [column]
    return tiles_at_ + static_cast<std::int64_t>(sum) * config_.lanes * bytes_of(most_turns_);
  }
  std::int64_t partials_of(std::size_t reduction) const {
    auto of_a_stripe = [&](const Turn& turn) { return contract::stripe / turn.leaves * bytes_of(turn); };
    return static_cast<std::int64_t>(reduction) * std::max(of_a_stripe(most_turns_), of_a_stripe(last_turns_));
  }
  Reg totals_of(std::size_t reduction) {  // [stripe], and one more that does not exist
    return b_.mul(b_.add(stripes_, 1), static_cast<std::int64_t>(reduction) * turn_bytes());
  }
  bool is_result(std::size_t array) const { return program_.array(array).result; }
  Type type_of(std::size_t array) const { return *program_.array(array).type; }
  const Spread& spread_of(std::size_t array) const { return program_.array(array).spread; }
  ArrayLayout layout_of(std::size_t array) const { return config_.layout.array(array); }

  const Program& program_;
  const Config& config_;
  const Stages stages_;
  const NodeNames names_{program_};
  const std::vector<bool> used_, varies_;
  KernelBuilder b_;
  Known whole_;
  Reg zero_, one_, columns_, last_column_, stripes_;
  std::vector<std::size_t> arrays_;           // all that are read or written
  std::map<std::size_t, Reg> bases_;          // pointers: per row or element, the turn's first row
  std::map<std::size_t, Reg> next_;           // the same, of the turn to come
  std::map<std::size_t, ColumnSteps> steps_;  // of those whose columns lie apart
  const Turn most_turns_, last_turns_{1, 2, false};
  Turn at_hand_ = most_turns_;
  Reg turn_, rows_;                        // its first row, and how many
  Reg row_, mask_;                         // of the register at hand: its first row, in the turn; rows that exist
  std::map<NodeId, std::int64_t> places_;  // of values per row, in scratch
  std::set<NodeId> placed_;                // those that this turn has evaluated
  std::int64_t tiles_at_ = 0, totals_at_ = 0;
};

template <typename Body>
void AcrossLowering::each_register(Body&& body) {
  if (at_hand_.registers == 1) {
    row_ = zero_;
    return body();
  }
  row_ = b_.copy(zero_);
  Reg end = b_.index(rows_of(at_hand_));
  b_.repeat_while_less(row_, end, [&] {
    body();
    b_.increase(row_, config_.lanes);
  });
}

}  // namespace trireme
