// The state of lowering one program's `rows` kernel. values.cpp evaluates nodes, reduce.cpp sums along a row,
// walk.cpp walks the rows, pointers.cpp says where they lie, sweep.cpp goes along their columns, column_sums.cpp keeps
// sums over rows, overlap.cpp lets two rows go along with each other.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "math/reductions.hpp"
#include "schedule/config.hpp"
#include "schedule/groups_apart.hpp"
#include "schedule/kernel_builder.hpp"
#include "schedule/lower.hpp"
#include "schedule/nodes.hpp"
#include "schedule/pair_sums.hpp"
#include "schedule/stages.hpp"
#include "schedule/values_by_node.hpp"
#include "schedule/wrapped_groups.hpp"

namespace trireme {

// A chunk of columns: `lanes * vector` of them, `vector` consecutive ones a lane.
struct Leaf {
  int id = -1;               // of an unrolled chunk, whose values can be kept; -1 in loops
  Reg column;                // Index; this thread's first column is column + offset
  std::int64_t offset = 0;   // elements
  Reg mask;                  // the lanes whose column and row exist; none: all do
  bool partial = false;      // some of its columns may not exist
  bool paired = false;       // its neighbour is visited next to it, and may share its stores
  std::int64_t aligned = 0;  // simd loops, in whole stripes: `column` is a multiple of it
  Reg back;                  // -column, where arrays lie backwards; only in loops
  Reg limit;                 // in loops, Index: columns exist below it; none: all do
};

// Is there a row to work on? Teams that shuffle together keep step, so one may have none.
struct RowState {
  Reg exists;  // Mask; none: it does
  Reg left;    // Index, where `exists` is: rows left
  Reg limit;   // columns, or nothing where the row does not exist; only where some chunk is partial
};

// How columns lie that do not lie side by side.
struct ColumnSteps {
  Reg stride;
  std::vector<std::pair<Reg, Reg>> jumps;  // every so many columns, elements more
};
ColumnSteps column_steps(KernelBuilder& b, const ArrayLayout& layout, std::size_t array);
Reg stepped(KernelBuilder& b, const ColumnSteps& steps, Reg column);  // elements from the row's first

// A number of a class that depends on the kind of entry; and its blocks in all.
Reg by_entry(KernelBuilder& b, SumNumber first, int sums, Reg entry);
Reg all_blocks(KernelBuilder& b, const SumClass& sums, int number);
// Where a row of entries begins in an array that begins at `base`.
Reg row_of_entries(KernelBuilder& b, const ArrayLayout& layout, std::size_t array, Type type, Reg base, Reg row);

class RowLowering {
 public:
  RowLowering(const Program& program, const Stages& stages, const Config& config, const std::vector<SumClass>& sums,
              Kernel& kernel);
  void run();

 private:
  // What one sweep has to evaluate, arguments first.
  struct Work {
    std::vector<NodeId> row;    // values that do not vary by column, wanted before the sweep
    std::vector<NodeId> chunk;  // values that do
  };

  // values.cpp
  void plan_work();
  bool worth_keeping(NodeId id, std::size_t sweep) const;
  Instr kept_access(Do code, NodeId id, const Leaf& leaf);
  void evaluate_whole();
  void evaluate_row(const std::vector<NodeId>& nodes);
  void evaluate_chunk(const std::vector<NodeId>& nodes, const Leaf& leaf);
  void hoist_columns();
  Reg one(NodeId id) const;
  Values chunk(NodeId id, const Leaf& leaf);
  Reg evaluate_one(NodeId id);
  std::vector<NodeId> row_values_below(NodeId root) const;
  Values load_chunk(std::size_t operand, const Leaf& leaf);
  Instr element_access(Do code, Type type, const ArrayLayout& layout, const Leaf& leaf) const;
  Reg back_from(Reg column);
  Values fresh_values();
  Reg random(const Node& node, const Leaf& leaf, int element);
  Reg random_at(const Node& node, Reg column);  // of one column, in all lanes
  Reg drawn_row(std::int64_t first) const;      // the row at hand, counted from that of the problem's first

  // access.cpp: divided, wrapped, rotated and strided indices, and comparisons of integers
  struct ColumnMap {
    Axis axis;
    std::int64_t rotate = 0;             // columns further on
    const ColumnSteps* steps = nullptr;  // none: columns side by side
    bool plain() const { return axis.plain() && !rotate && !steps; }
  };
  void evaluate_divisors();
  std::optional<std::int64_t> fixed_divisor(NodeId id) const;
  Reg divisor(NodeId id) const { return divisors_.at(id); }
  // Columns that a Rotate turns by; lower() has seen that it is a number.
  std::int64_t rotation(NodeId id) const { return static_cast<std::int64_t>(program_[program_[id].args[1]].number()); }
  bool axis_is(const Axis& axis, const AxisIndexing& row) const;
  Reg mapped_row(const Axis& axis);
  // picked_rows.cpp: tables whose rows an operand picks
  struct Pick {
    Reg row, rows;  // what the operand says; how many there are
    Reg inside;     // mask, of operands and on thread machines
  };
  Reg picked_row(std::size_t array);
  Reg inside_of(std::size_t operand) const;  // none where the operand's rows are not picked
  Values inside_or_0(std::size_t operand, Values values);
  Reg both(Reg mask, Reg other);  // masks that may be none
  Reg is_inside(Reg index, Reg count);
  Reg nearest_inside(Reg index, Reg count);
  template <typename Store>
  void store_picked(std::size_t array, Store&& store);
  Reg entry_on(const Axis& axis, Reg index, bool narrow = false);
  // Twice the columns, and those of chunks beyond the row's end, are below 2^32.
  bool columns_are_narrow() const { return config_.columns && config_.columns < 1 << 30; }
  Reg rotated_column(const ColumnMap& map, Reg column);
  Reg mapped_column(const ColumnMap& map, Reg column);
  ColumnMap map_of_operand(std::size_t operand, std::int64_t rotate);
  Values load_mapped(Type type, Reg pointer, const ColumnMap& map, const Leaf& leaf);
  Values rotated_index(const Node& node, std::int64_t rotate, const Leaf& leaf);  // j, or random
  Values load_mapped(const Instr& from, const ColumnMap& map, const Leaf& leaf);
  struct RotatedBlock {
    std::int64_t rotate;
    int low, high;  // those of its elements
  };
  std::vector<RotatedBlock> rotated_blocks(std::int64_t rotate) const;
  Values load_by_thread(const Instr& from, const ColumnMap& map, const Leaf& leaf);
  Values load_by_lanes(const Instr& from, const ColumnMap& map, const Leaf& leaf);
  struct Place {
    Reg index;
    std::int64_t beyond;  // entries further on
  };
  Place place_of(const ColumnMap& map, const AxisIndexing& axis, const Leaf& leaf);
  struct TwoEntries {
    Reg first, last;  // Index
    Reg on_first;     // Mask: lanes
  };
  TwoEntries two_entries(const ColumnMap& map, const AxisIndexing& axis, const Leaf& leaf);
  void forget_places() { places_.clear(), two_entries_.clear(), column_distances_.clear(); }
  std::optional<Place> columns_in_order(NodeId id, const Leaf& leaf);
  bool keeps_vectors(std::int64_t rotate) const {
    return !anywhere_ && rotates_whole_vectors(rotate, config_.columns, config_.lanes);
  }
  Reg load_entry(const Instr& from, const ColumnMap& map, Reg column, Reg mask);
  void store_mapped(Type type, Reg pointer, const ColumnMap& map, const Leaf& leaf, const Values& values);
  void put_lane(Reg value, Reg place);
  void take_lanes(Reg value, Reg mask);
  template <typename Each>
  void lane_by_lane(const Leaf& leaf, Each&& each);
  Reg integer_of_row(NodeId id);
  Reg pick_column(const Node& node);
  Reg at_column(NodeId id, Reg column, std::unordered_map<NodeId, Reg>& known);
  Reg integer_at(NodeId id, Reg column, Reg mask);
  Values integer_condition(const Node& node, const Leaf& leaf);
  bool compares_distances() const;
  Reg distance_of(NodeId id);
  Reg integer_for_columns(NodeId id);
  void make_row_integers(const std::vector<NodeId>& nodes);
  Reg distance_from(NodeId id, Reg column);
  std::int64_t known_remainder(NodeId id) const;  // what a column's remainder is taken by, where a chunk knows it; or 0
  Reg integer_condition_of_row(const Node& node);
  Reg integer_mask(Op op, Reg a, Reg b, bool large);
  bool is_large(NodeId id) const;  // may be too large to have 1 added to it, or to be taken from another
  Values mask_less(Reg a, Reg b);
  ValuesByNode& memory_of(NodeId id, const Leaf& leaf);
  bool varies_by_row(NodeId id) const { return varies_by_row_[id]; }

  // reduce.cpp
  Reg combine(Op op, Reg a, Reg b) { return trireme::combine(b_, op, a, b); }
  Reg butterfly(Op op, Reg value, int from_lane, int to_lane);
  // Sums of a tree walked depth first, each with its level; a new one joins those of its own level.
  using OpenSums = std::vector<std::pair<int, std::optional<Values>>>;
  void join(Op op, OpenSums& open, std::optional<Values> sum);
  // The order in which a sweep visits `chunks` chunks of a stripe, and their sums.
  class Trees {
   public:
    Trees(RowLowering& lowering, std::vector<Op> ops, int chunks);
    bool in_order() const { return in_order_; }
    std::size_t count() const { return ops_.size(); }
    int place(int step) const;
    void join(std::size_t which, int step, std::optional<Values> sum);
    std::optional<Values> sum(std::size_t which);

   private:
    RowLowering& lowering_;
    std::vector<Op> ops_;
    int chunks_;
    bool in_order_;  // chunks one after the other, or depth first
    std::vector<OpenSums> open_;
  };
  std::optional<Values> fold(Op op, const std::optional<Values>& a, const std::optional<Values>& b);
  Reg across_lanes(Op op, std::vector<std::optional<Values>> stripes, int lanes);
  Reg across_lanes(Op op, std::vector<std::optional<Values>> stripes) {
    return across_lanes(op, std::move(stripes), config_.lanes);
  }
  std::vector<Reg> across_lanes_apart(Op op, std::vector<Values> stripes);
  Values halved(Op op, const Values& values, int lanes);
  void publish(std::size_t sweep, std::size_t which, Reg partial);
  Reg published(std::size_t sweep, std::size_t which, Reg first, int n, Reg mask);
  Reg across_groups(std::size_t sweep, std::size_t which, Op op);
  std::int64_t sums_of(std::size_t sweep, std::size_t which) const {
    return sums_at_[sweep] + static_cast<std::int64_t>(which) * config_.groups * config_.cluster * value_bytes();
  }
  Reg across_stripes(std::size_t which, Op op);
  std::int64_t spilled_at(std::size_t reduction) const;
  void spill(std::size_t reduction, Reg place, Values values, std::int64_t chunk = 0);
  Reg sum_of_spilled(std::size_t reduction, Op op, int count);
  Reg halved_in_scratch(std::int64_t at, Op op, int count);
  // A sweep adds up in passes over each stripe: the elements of reductions and folds, then the terms of folds.
  enum class Pass { Elements, Terms };
  std::vector<Op> ops_of(std::size_t sweep, Pass pass) const;
  Values addend(std::size_t sweep, Pass pass, std::size_t which, const Leaf& leaf);
  Values present(Values values, Op op, const Leaf& leaf);
  // Totals are numbered: of reductions, the first ones of folds, the second ones.
  static std::size_t first_of(const Stage& stage, Pass pass) {
    return pass == Pass::Elements ? 0 : stage.reductions.size() + stage.folds.size();
  }
  static std::array<std::size_t, 2> totals_of_fold(const Stage& stage, std::size_t which) {
    const std::size_t first = stage.reductions.size() + which;
    return {first, first + stage.folds.size()};
  }
  template <typename Sum>
  std::vector<Reg> store_totals(std::size_t sweep, Pass pass, Reg stripe, Sum&& sum);
  void begin_terms(std::size_t sweep, const std::vector<Reg>& firsts, std::optional<std::int64_t> columns, Reg count);
  void begin_terms(std::size_t sweep, int stripe, const std::vector<std::vector<Reg>>& firsts, std::size_t which);

  // folds.cpp
  using Pair = std::array<Reg, 2>;  // the totals of a fold
  struct Merge {                    // of two neighbours, `width` columns each unless the row ends in the right one
    std::int64_t width;
    Reg base;  // Index: where the left one begins, `offset` columns further on; none: the row's begin
    std::int64_t offset = 0;
    std::int64_t last_base;  // the largest that `base` can be
  };
  void plan_elements(std::size_t sweep);
  void evaluate_elements(std::size_t sweep, const Leaf& leaf);
  Pair merged(std::int64_t fold, const Pair& left, const Pair& right,
              const std::array<std::optional<std::int64_t>, 2>& columns, const std::array<Reg, 2>& counts);
  Pair merged(std::int64_t fold, const Pair& left, const Pair& right, const Merge& where);
  Pair chosen(Reg mask, const Pair& yes, const Pair& no);
  Pair across_unrolled(std::int64_t fold, std::vector<Pair> stripes);
  // A lane, numbered by the low bits of its own, has the totals of `unit` columns.
  struct Lanes {
    int count;                   // a power of two
    Reg base;                    // Index: where the columns of number 0 begin; none: the row's begin
    std::int64_t last_base = 0;  // the largest that `base` can be
    std::int64_t unit;
  };
  Pair across_lanes(std::int64_t fold, Pair totals, const Lanes& lanes);
  Pair across_groups(std::size_t sweep, std::size_t which);
  Pair across_stripes(std::size_t sweep, std::size_t which);
  Pair pair_by_pair(std::int64_t fold, const std::array<std::size_t, 2>& places);
  void finish_totals(const FoldTotals& fold, const Pair& totals);
  void store_stripe(std::size_t which, Reg total, Reg stripe);

  // lower.cpp, walk.cpp, sweep.cpp, column_sums.cpp
  void locate_threads();
  void locate_columns();
  void locate_groups();
  void walk_blocks();
  void walk_rows(Reg end_row);  // from row_ on
  void begin_row();
  void one_row();
  void advance_pointers();  // to the next row
  void sweep(std::size_t k);

  // overlap.cpp. The *lead* is the row at hand; the *trail*, the row before it, has its last sweep to go.
  bool can_overlap() const;
  void walk_overlapping(Reg end);
  void walk_pairs(Reg end);
  void start_trail();
  void lead();
  void hand_over();
  void visit_both(const Leaf& leaf);
  template <typename Body>
  void in_trail(Body&& body);
  void sweep_unrolled(std::size_t k);
  void sweep_in_loops(std::size_t k);
  void stripe_in_full(std::size_t k, Reg column);
  void last_stripe(std::size_t k, Reg column, Reg remaining);
  void visit(std::size_t k, const Leaf& leaf);  // evaluates the sweep's values and makes its stores and column sums
  void evaluate(std::size_t k, const Leaf& leaf);
  void finish(std::size_t k, const Leaf& leaf);
  bool streams(std::size_t k, Type type) const;
  bool stores_two(Type type) const;
  bool whole_lines() const { return config_.simd && config_.lanes * value_bytes() == line_bytes; }
  void store(Instr instr, const Leaf& leaf);
  void finish_stores();
  void prefetch_next(std::size_t k, const Leaf& leaf);
  void store_rows();
  void store_by_owner(Type type, Reg pointer, Reg value, Reg mask);  // of a row
  struct ClassSums {
    int number;  // of the class
    const SumClass* what;
    std::vector<Reg> partial_rows = {};             // by result: pointers to the block's
    std::vector<std::vector<Values>> columns = {};  // [result][leaf], of unrolled stripes
    std::vector<Reg> rows = {};                     // by result, of values per row
  };
  void find_sums(const std::vector<SumClass>& classes);
  bool of_rows(const ClassSums& sums) const;
  void point_at_partials(ClassSums& sums, Reg block);
  void begin_column_sums(ClassSums& sums, Reg blocks_left = {});
  Reg begin_piece(ClassSums& sums, Reg end, bool whole_blocks);
  void clear_partials(const ClassSums& sums, Reg blocks_left);
  void finish_column_sums(const ClassSums& sums);
  std::pair<ClassSums*, std::size_t> sums_of_result(std::size_t result);
  void add_to_columns(std::size_t result, const Leaf& leaf);
  void add_to_rows(std::size_t result);
  template <typename Body>
  void each_unrolled(Body&& body);
  bool by_entries() const { return !config_.simd && !sums_.empty() && sums_[0].what->where.row.present; }
  bool in_teams() const { return by_entries() && sums_[0].what->in_teams; }
  bool same_in_block(std::size_t operand) const;
  void begin_block();
  // Of an entry whose rows a team takes, block by block.
  struct BlocksOfEntry {
    Reg row_block, block_end, count;  // of the block at hand, and those before it
    PairStack sums;
  };
  std::vector<Reg> sums_of_block() const;
  void begin_entry();
  void finish_block(Reg end);
  void finish_entry();

  // group_sums.cpp
  struct Groups {  // of columns that share an entry of a result, or one of a value's groups
    std::size_t result = 0;
    NodeId node = no_node;  // of a value
    Op op = Op::Sum;
    bool entries = false;  // of a value: only the first group is wanted
    AxisIndexing column;
    Shares shares;
    std::int64_t wide = 1;        // entries
    bool rematerialised = false;  // simd machines: terms are made where they are added up, and none are kept
    std::optional<std::size_t> made_before = {};  // simd machines, of a value made of groups: the sweep that first asks
    std::int64_t terms_at = 0;                    // bytes, where a row's terms lie
    std::int64_t values_at = 0;                   // of a value: where what they come to lies
    std::int64_t most() const;                    // columns of an entry
  };
  std::int64_t lay_out_groups();
  void place_terms();
  Instr term_access(Do code, std::int64_t at, Reg index, Reg mask) const;
  Reg load_term(std::int64_t at, Reg index, Reg mask);
  void keep_terms(std::size_t sweep, const Leaf& leaf);
  void sum_groups(std::size_t sweep);
  bool finishes(std::size_t sweep, const Groups& groups) const;
  static int turns_of_tree(int count) { return std::max(count / most_unrolled, 1); }
  Reg tree_through_scratch(int count, const std::function<std::optional<Reg>(Reg, int)>& value);
  Reg sum_contiguous(std::int64_t at, Reg begin, Reg count, std::int64_t most);
  void put_group_sum(Reg entry, Reg sum);
  void contiguous_groups(const Groups& groups);
  void strided_groups(const Groups& groups);
  void groups_of_strided_runs(const Groups& groups);
  void finish_groups(const Groups& groups);
  void groups_by_threads(const Groups& groups);
  void finish_by_threads(const Groups& groups, Reg entry, Reg sum, Reg mask);

  // groups_rematerialised.cpp. Simd machines: the same, from terms that are made where they are added up.
  static constexpr int most_unrolled = 16;  // values of a tree
  static constexpr std::int64_t line_values = 64;
  static std::int64_t whole(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }
  std::int64_t rematerialised_places(const Groups& groups) const;
  Reg rematerialise_term(const Groups& groups, Reg column, std::int64_t offset, Reg mask, bool inside);
  void sum_rematerialised(std::size_t sweep, const Groups& groups);
  bool stored_by_entry(std::size_t result) const;
  bool is_stored_by_entry(NodeId id) const;
  void store_by_entries(std::size_t sweep);
  void find_values_of_groups();
  void plan_values_of_groups(std::size_t sweep, const std::vector<NodeId>& roots, std::vector<NodeId>& of_row);
  void make_values_of_groups(std::size_t sweep);
  const Groups* value_of_groups(NodeId id) const;
  void read_on(const Groups& groups, Reg place);
  void repeat_first(const Groups& groups);
  NodeId at_hand_ = no_node;  // the value of groups that is being made
  bool sweeps_for_nothing(std::size_t sweep) const;
  void rematerialise_neighbours(const Groups& groups);
  void rematerialise_remainders(const Groups& groups);
  Values load_rematerialised(const Groups& groups, const Leaf& leaf);
  Reg quotient(Reg column, std::int64_t by);
  bool anywhere_ = false;  // the chunk at hand begins at any column

  // group_values.cpp
  bool is_kept_group(NodeId id) const { return kept_groups_[id] && id != at_hand_; }
  Groups groups_of_node(NodeId id) const;
  void spread_groups(const Groups& groups);
  Values load_group(NodeId id, std::int64_t rotate, const Leaf& leaf);
  Values group_in_chunk(NodeId id, const Leaf& leaf);
  bool in_chunks_of_row(NodeId id) const;
  Values group_in_row(NodeId id, const Leaf& leaf);
  Values add_bit(Op op, const Values& values, std::int64_t bit);
  void find_group_widths();
  std::int64_t chunk_columns() const { return std::int64_t{config_.lanes} * config_.vector; }
  // Of j / by; chunks begin at multiples of their columns, counted from the row's begin or from a stripe's.
  bool one_entry_a_chunk(std::int64_t by) const {
    if (anywhere_) return false;
    return by % config_.stripe() == 0 || (config_.stripe() % chunk_columns() == 0 && by % chunk_columns() == 0);
  }
  bool spans_chunks(NodeId id) const { return group_width_[id] > chunk_columns(); }
  Values group_over_chunks(const Node& node, const Leaf& leaf);
  Leaf part_of_group(const Leaf& leaf, std::int64_t width, std::int64_t part);
  Values value_of_part(NodeId id, const Leaf& leaf);
  const Values* shared_in_group(NodeId id, const Leaf& leaf);
  void share_in_group(NodeId id, const Leaf& leaf, const Values& values);
  void load_kept(std::size_t sweep, const std::vector<NodeId>& nodes, const Leaf& leaf);
  std::vector<std::int64_t>
      group_width_;  // by node: columns that have one value, neighbours; 0 where that is not known
  std::map<std::pair<NodeId, std::int64_t>, Values> group_values_;  // loops: by node and group, of the chunks at hand
  std::size_t sweep_at_hand_ = 0;
  void store_groups(std::size_t result, const Leaf& leaf);
  void store_empty_groups(std::size_t result);
  std::vector<bool> kept_groups_;  // by node: reductions inside groups whose values lie in scratch
  Op group_op_ = Op::Sum;          // of the groups at hand

  // wrapped_groups.cpp
  using PartsOfStripe = std::vector<std::optional<Values>>;  // by chunk
  const WrappedGroups::Group* wrapped(NodeId id) const;
  void keep_wrapped(std::size_t sweep, const Leaf& leaf);
  void add_places(Op op, PartsOfStripe& parts, std::int64_t period);
  PartsOfStripe add_pairs(Op op, std::vector<PartsOfStripe> runs);
  PartsOfStripe add_halves(Op op, std::vector<PartsOfStripe> parts);
  void sum_wrapped(std::size_t sweep);
  PartsOfStripe add_own_stripes(const WrappedGroups::Group& group);
  void send_parts(const WrappedGroups::Group& group, const PartsOfStripe& parts);
  PartsOfStripe add_sent_parts(const WrappedGroups::Group& group, const PartsOfStripe& own);
  Instr sent_part(Do code, const WrappedGroups::Group& group, std::size_t chunk, Reg place, int sender,
                  Values values) const;
  // Columns from one of a thread's stripes to the next.
  std::int64_t stripe_step() const { return wrapped_.interleaved * config_.stripe(); }

  // groups_apart.cpp
  struct Elsewhere {  // what of a layout differs from the schedule's
    Config config;
    WrappedGroups wrapped = {};
    Reg thread_column = {}, column_of_group = {}, in_stripe = {}, column_shift = {};
    std::map<NodeId, Reg> distances = {};
  };
  const GroupsApart::Group* apart(NodeId id) const;
  void locate_apart();
  void swap_layout(Elsewhere& there);
  Instr value_apart(Do code, const GroupsApart::Group& group, Reg entry, Reg mask) const;
  void sum_apart(std::size_t sweep);
  void terms_apart(const GroupsApart::Group& group);
  RowState state_apart();
  void neighbours_apart(const GroupsApart::Group& group);
  void remainders_apart(const GroupsApart::Group& group, const PartsOfStripe& parts);

  bool writes(std::size_t result) const;
  void lay_out_scratch();
  void prefetch(Reg row, Reg end, Reg ring_offset);
  std::vector<std::size_t> used_operands() const;
  Leaf unrolled_leaf(int stripe, int chunk, const RowState& row);
  bool always_inside(std::int64_t offset) const;
  // Columns of a stripe from here on; rule 4's stripe is cut by chunks, or is the row.
  std::int64_t left_in_stripe(std::int64_t offset) const {
    return config_.group ? config_.stripe() - offset % config_.stripe() : most_columns;
  }
  Reg in_stripe(std::int64_t offset) const { return left_in_stripe(offset) < chunk_columns() ? in_stripe_ : Reg{}; }
  Reg mask_of(const Leaf& leaf);  // in loops
  // Of the chunks of a group, which go together, some may lie beyond the row: what no mask guards needs a test.
  bool may_be_absent(const Leaf& leaf) const { return leaf.limit && (leaf.offset > 0 || anywhere_); }
  RowState row_state(Reg row, Reg end);
  bool runs_on(int jumps) const;
  bool points_at_column(std::size_t array) const;
  Reg row_pointer(std::size_t array);
  struct RowJump {
    Reg every, elements, turn;  // turn: jumps made up to this row
  };
  RowJump row_jump(std::size_t array, int jump);
  std::map<std::pair<std::size_t, int>, RowJump> row_jumps_;  // of the block's first row
  void start_running_pointers();
  void meet(std::size_t sweep);  // all groups of a row, in one block or several
  void open_mailboxes();
  bool one_row_a_team() const { return !config_.simd && config_.rows == 1 && sums_.empty(); }

  std::int64_t value_bytes() const { return static_cast<std::int64_t>(bytes(*program_.compute)); }
  int chunks() const;  // of a stripe
  int unroll() const { return seldom_ ? 1 : std::min(config_.unroll, chunks()); }
  bool in_ring(std::size_t operand) const;
  bool copies_whole(std::size_t operand) const;
  void stage_columns();

  const Program& program_;
  const Stages& stages_;
  Config config_;
  const Layout& layout_;
  KernelBuilder b_;

  std::vector<Work> work_;
  std::vector<std::vector<NodeId>> elements_;  // by sweep: what the elements of its folds are made of
  struct Terms {                               // of a fold, in the stripe at hand
    const FoldFormula* formula;
    std::vector<Reg> known;  // by node, of those that are the same for all elements
  };
  std::vector<Terms> terms_at_hand_;
  // Formulas of folds by fold, kind and the columns that are known: a kernel has the same ones many times.
  using FormulaKey = std::tuple<std::int64_t, bool, std::optional<std::int64_t>, std::optional<std::int64_t>>;
  std::map<FormulaKey, FoldFormula> formulas_;
  const FoldFormula& term_formula(std::int64_t fold, std::optional<std::int64_t> columns);
  const FoldFormula& merge_formula(std::int64_t fold, const std::array<std::optional<std::int64_t>, 2>& columns);
  Reg term(const Terms& terms, Reg element, Reg weight);
  struct Kept {
    NodeId id;
    std::size_t sweep;  // that evaluates it
    Reg at;             // loops: where its row lies in scratch, in bytes
  };
  std::vector<Kept> kept_;            // simd machines: costly values that a later sweep needs again
  bool reads_other_columns_ = false;  // some value is read at other columns than a thread's own, or as an integer
  const NodeNames names_{program_};
  std::vector<bool> used_, varies_by_row_;
  std::unordered_map<NodeId, Reg> whole_, row_values_;
  ValuesByNode loop_values_;                           // of the leaf at hand, in loops
  std::vector<ValuesByNode> row_leaves_, all_leaves_;  // by Leaf::id: this row's, every row's

  Reg zero_, one_index_, columns_, row_;
  Reg lane_, group_, team_;  // thread machines
  Reg row_owner_;            // 0 in the one thread that writes a row's own results
  Reg group_column_;         // folds of several groups: the first column of this group
  Reg block_column_;         // as thread_column_, counted from the block's first column
  Reg rank_;                 // this block's number in its cluster
  Reg thread_column_;        // the first column of this thread in leaf 0
  Reg column_of_group_;      // groups in place of stripes: the same, counted from the group's first
  Reg in_stripe_;            // Mask: columns of a group's last chunk, which is not whole
  RowState state_;           // of the row at hand
  // By first row: the row at hand, as random numbers count it.
  std::unordered_map<std::int64_t, Reg> drawn_rows_;
  static constexpr std::int64_t line_bytes = 64;
  static constexpr std::int64_t most_columns = std::int64_t{1} << 62;
  std::vector<Instr> half_stores_;                      // that wait for the next chunk's
  std::vector<std::pair<std::size_t, Reg>> next_rows_;  // operands to prefetch: where their next row begins
  std::unordered_map<std::size_t, Reg> column_pointers_, row_pointers_;  // by array
  struct Running {  // the pointer to the row at hand moves on by a stride, and every so many rows by a jump
    struct Jump {
      Reg row, every, bytes;  // row: since the last jump
    };
    Reg pointer, stride_bytes;
    std::vector<Jump> jumps;
  };
  void advance_pointers(const Running& running);
  Running copy_of(const Running& running);
  std::unordered_map<std::size_t, Running> running_, running_ahead_;  // by array
  struct Trail {  // what of the row before differs from the row at hand
    std::unordered_map<NodeId, Reg> row_values;
    ValuesByNode loop_values;
    std::unordered_map<std::size_t, Running> running;
  } trail_;
  bool overlap_ = false, trailing_ = false;  // rows overlap; there is a trail
  bool seldom_ = false;                      // the code at hand runs once for many rows: short is better than fast
  std::unordered_map<std::size_t, ColumnSteps> column_steps_;  // of strided arrays
  std::unordered_map<NodeId, Reg> divisors_;                   // Index registers
  // Of the leaves at hand, in loops: by divisor, wrap, rotation, column and offset.
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, int, std::int64_t>, Reg> places_;
  std::map<std::tuple<std::int64_t, std::int64_t, int, std::int64_t>, TwoEntries> two_entries_;  // without rotation
  std::map<std::pair<NodeId, int>, Reg> column_distances_;  // of a row's integers, by their column
  std::map<NodeId, Reg> row_integers_;                      // of the sweep at hand, that its columns are compared with
  std::map<NodeId, Reg> distances_;                         // of this row's integers from the thread's first column
  std::map<std::pair<NodeId, NodeId>, Reg> mapped_rows_;    // of this row, by divisor and wrap
  std::map<NodeId, Reg> seeds_;                             // Index registers
  std::map<std::size_t, Pick> picks_;                       // of this row, by array
  std::int64_t lanes_at_ = 0;                               // scratch: one vector, filled or read lane by lane

  WrappedGroups wrapped_;
  std::int64_t wrapped_at_ = 0;                                                   // in scratch
  std::unordered_map<NodeId, std::vector<std::optional<Values>>> wrapped_terms_;  // by leaf
  std::unordered_map<NodeId, PartsOfStripe> wrapped_sums_;
  GroupsApart apart_;
  std::vector<Elsewhere> elsewhere_;  // of apart_'s groups
  Reg column_shift_;                  // Index, in a layout apart: columns from the schedule's own to those at hand
  Reg apart_team_;
  std::int64_t apart_at_ = 0;  // in scratch
  std::vector<Groups> groups_;
  Reg terms_, terms_team_;             // thread machines: a team's terms, in the workspace or in scratch
  std::int64_t group_team_bytes_ = 0;  // of its terms
  std::int64_t group_sums_at_ = 0, group_spill_at_ = 0, group_copy_at_ = 0;  // simd machines, in scratch
  std::vector<ClassSums> sums_, row_sums_;                                   // by row blocks; over everything
  std::int64_t row_step_ = 1;                                                // from one row of a block to the next
  Reg entry_;                                                                // of the rows at hand, those of sums_[0]
  Reg block_, block_end_;  // thread machines, by entries: this one, or this entry; where its rows end
  std::optional<BlocksOfEntry> entry_blocks_;
  Reg run_end_;  // where the next row is not row_step_ further on

  // Scratch, in bytes
  std::vector<std::int64_t> sums_at_;       // by sweep: unrolled groups, [parity][reduction][group]
  std::vector<std::int64_t> mailboxes_at_;  // by sweep, in clusters
  Reg parity_;                              // 0 or parity_bytes_
  Reg rows_done_, turn_;                    // clusters: of this block; which turn of a mailbox it is
  bool met_ = false;  // the cluster's blocks know of each other's mailboxes; where a team has one row, met late
  std::int64_t parity_bytes_ = 0;
  std::int64_t spill_at_ = 0;   // loops: vectors of a stripe, [reduction][chunk]
  std::int64_t totals_at_ = 0;  // loops: totals of the stripes, [reduction][stripe]
  Reg stripes_;                 // loops: number of stripes
  std::int64_t ring_at_ = 0, ring_slot_bytes_ = 0;
  std::unordered_map<std::size_t, std::int64_t> ring_operands_;  // operand -> offset in a slot of the ring
  Reg ring_offset_;
  std::map<std::size_t, std::int64_t> staged_operands_;  // operand -> offset in scratch
};

// Simd machines: each(column, place) for the leaf's existing columns; `place` is the lane, as an Index.
template <typename Each>
void RowLowering::lane_by_lane(const Leaf& leaf, Each&& each) {
  Reg first = b_.add(leaf.column, leaf.offset);
  Reg count = b_.index(Do::IndexMin, b_.index(Do::IndexSub, columns_, first),
                       std::min<std::int64_t>(config_.lanes, left_in_stripe(leaf.offset)));
  Reg place = b_.copy(zero_);
  b_.repeat_while_less(place, count, [&] {
    each(b_.add(first, place), place);
    b_.increase(place, 1);
  });
}

}  // namespace trireme
