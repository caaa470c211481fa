#include "language/random_program.hpp"

#include <limits>

#include "language/random_groups.hpp"
#include "math/functions.hpp"
#include "math/reductions.hpp"

namespace trireme {
namespace {

class Maker {
 public:
  explicit Maker(const RandomProgram& options)
      : want_(options), dice_(options.seed), indices_(program_, dice_, options.columns_multiple, counts_) {}

  Program run() {
    program_.name = "random_" + std::to_string(want_.seed);
    if (want_.bound) program_.compute = dice_.one_in(3) ? Type::F64 : Type::F32;
    std::size_t operands = 1 + dice_.below(4);
    std::size_t pickers = want_.picks ? dice_.below(3) : 0;
    bool constants_first = dice_.one_in(2);
    make_constants(constants_first ? 0 : operands + pickers + want_.seeds);
    if (constants_first) declare_constants();
    declare_operands(operands, pickers);
    if (!constants_first) declare_constants();
    declare_results();
    grow(want_.size);
    for (Output& result : program_.results) result.value = value_for(result.spread);
    if (want_.odd_names) name_oddly();
    return std::move(program_);
  }

 private:
  // Braces: arguments are made from left to right, whatever the compiler; an operation is drawn in a statement before.
  NodeId add(Op op, std::initializer_list<NodeId> args = {}, std::int64_t payload = 0) {
    return program_.add(op, args, payload);
  }

  std::optional<Type> type() {
    if (!want_.bound) return std::nullopt;
    const Type type = dice_.one_of(type_facts).type;
    return is_packed(type) ? Type::U8 : type;  // which only some arrays may be
  }

  // They stand before or behind the operands in memory; a node only knows their index.
  void make_constants(std::size_t first) {
    for (std::size_t k = dice_.below(3); k > 0; --k) {
      constants_.push_back(first++);
      NodeId fallback = dice_.one_in(4) ? no_node : number();
      made_constants_.push_back({.name = "c" + std::to_string(k), .constant = true, .fallback = fallback});
    }
    for (std::size_t k = want_.divided || want_.rotations ? dice_.below(3) : 0; k > 0; --k) {
      counts_.push_back(first++);
      NodeId fallback = program_.number(static_cast<double>(1 + dice_.below(5)));
      made_constants_.push_back({.name = "count" + std::to_string(k), .constant = true, .fallback = fallback});
    }
  }

  void declare_constants() {
    for (Operand& each : made_constants_) program_.operands.push_back(std::move(each));
  }

  Spread spread() {
    Spread spread;
    bool divided = want_.divided && dice_.one_in(3);
    if (!dice_.one_in(3)) spread.row = indices_.axis(divided);
    if (!dice_.one_in(3)) spread.column = indices_.axis(divided);
    return spread;
  }

  // The first is per element, as every operator's is; a default reads what stands before.
  void declare_operands(std::size_t count, std::size_t pickers) {
    for (std::size_t k = 1; k <= count; ++k) {
      Operand operand{.name = "x" + std::to_string(k), .type = type()};
      if (k == 1) operand.spread = {{true}, {true}};
      else operand.spread = spread();
      if (k > 1) pick_row(operand.spread, pickers_);
      if (want_.defaults && dice_.one_in(2)) operand.fallback = default_for(operand.spread);
      symbols_.push_back(operand.name);
      NodeId id = static_cast<NodeId>(program_.operands.size());
      program_.operands.push_back(std::move(operand));
      values_.push_back(add(Op::Operand, {}, id));
      operands_.push_back(values_.back());
      for (; pickers > 0; --pickers) declare_picker();
      if (want_.seeds && k == 1) declare_seed();
    }
    for (std::size_t index : constants_) values_.push_back(add(Op::Constant, {}, static_cast<std::int64_t>(index)));
    if (want_.indices)
      for (Op op : indices) values_.push_back(add(op));
  }

  void declare_picker() {
    Operand operand{.name = "p" + std::to_string(pickers_.size() + 1)};
    if (want_.bound) operand.type = dice_.one_in(2) ? Type::I32 : Type::I64;
    if (!dice_.one_in(4)) operand.spread.row = indices_.axis(want_.divided && dice_.one_in(3));
    const bool own = operand.spread.row.present && operand.spread.row.plain();
    const NodeId index = static_cast<NodeId>(program_.operands.size());
    program_.operands.push_back(std::move(operand));
    const NodeId id = add(Op::Operand, {}, index);
    pickers_.push_back(id);
    if (own) own_pickers_.push_back(id);
    values_.push_back(id);
  }

  void declare_seed() {
    Operand operand{.name = "seed"};
    if (want_.bound) operand.type = Type::I64;
    const NodeId index = static_cast<NodeId>(program_.operands.size());
    program_.operands.push_back(std::move(operand));
    seed_ = add(Op::Operand, {}, index);
  }

  NodeId randomness() {
    constexpr std::int64_t streams[] = {0, 1, 77, 0xFFFFFFFF};
    const NodeId drawn = add(Op::Random, {seed_}, dice_.one_of(streams));
    if (want_.bound || !want_.casts || dice_.one_in(2)) return drawn;
    const NodeId args[] = {value(), drawn};
    return program_.symbol(Op::CastStochastic, dice_.one_of(symbols_), args);
  }

  void pick_row(Spread& spread, const std::vector<NodeId>& pickers) {
    if (!want_.picks || pickers.empty() || !dice_.one_in(2)) return;
    spread.row = {.present = true, .pick = dice_.one_of(pickers)};
  }

  NodeId default_for(const Spread& spread) {
    if (values_.empty() || dice_.one_in(2)) return number();
    grow(static_cast<int>(1 + dice_.below(dice_.one_in(4) ? 80 : 6)));
    return narrowed(values_.back(), spread);
  }

  void declare_results() {
    std::size_t count = 1 + dice_.below(4);
    for (std::size_t k = 1; k <= count; ++k) {
      Spread wanted{{true}, {true}};
      if (k > 1) wanted = spread();
      if (!wanted.column.divided()) pick_row(wanted, own_pickers_);
      if (!want_.column_sums && takes_column_sum(wanted)) wanted = {{true}, {}};
      if (!want_.reductions && !wanted.column.present) wanted = {{true}, {true}};
      program_.results.push_back({.name = "y" + std::to_string(k), .spread = wanted, .type = type()});
      symbols_.push_back(program_.results.back().name);
    }
  }

  // Makes a value fit a spread: reduces it along the row, or gives up and takes a number.
  NodeId narrowed(NodeId id, const Spread& spread) {
    if (is_group(spread.column) && want_.groups && want_.reductions) {
      id = groups_.fitted(id, spread.column);
      return program_[id].by_row && !(spread.row.present && !spread.row.divided()) ? number() : id;
    }
    if (program_[id].by_column && !(spread.column.present && spread.column.plain())) {
      if (!want_.reductions) return number();
      const Op op = dice_.one_of(plain_reductions);
      id = add(op, {id});
    }
    if (program_[id].by_row && !(spread.row.present && !spread.row.divided())) return number();
    return id;
  }

  // Several results and late values together reach most of what was grown.
  NodeId value_for(const Spread& spread) {
    NodeId value = values_[values_.size() - 1 - dice_.below(std::min<std::size_t>(values_.size(), 6))];
    for (std::size_t k = dice_.below(4); k > 0; --k) value = add(Op::Add, {value, dice_.one_of(values_)});
    const bool own = is_of_groups(spread) && want_.groups && want_.reductions && dice_.one_in(2);
    if (!takes_column_sum(spread) || own) return narrowed(value, spread);
    const bool largest = want_.column_maxima && dice_.one_in(3);
    return add(largest ? Op::ColumnMax : Op::ColumnSum, {value});
  }

  NodeId number() {
    if (want_.special_numbers && dice_.one_in(6)) {
      constexpr double infinity = std::numeric_limits<double>::infinity();
      constexpr double special[] = {infinity, -infinity, 0x1p-149, 0x1.fffffep127, 1e-300, 0x1.fffffffffffffp1023};
      if (dice_.one_in(7)) return program_.number(std::numeric_limits<double>::quiet_NaN());
      return program_.number(dice_.one_of(special));
    }
    constexpr double small[] = {0, -0.0, 1, -1, 2, 0.5, -3, 1e-6, 0.1, 1.4426950408889634, 255, 1e5};
    return program_.number(dice_.one_of(small));
  }

  // Late values are likelier, so that graphs grow deep as well as wide.
  NodeId value() {
    if (values_.empty() || dice_.one_in(8)) return number();
    if (dice_.one_in(2)) return dice_.one_of(values_);
    return values_[values_.size() - 1 - dice_.below(std::min<std::size_t>(values_.size(), 4))];
  }

  // A side of a comparison that is made in integers: i, j, n, a whole number, or an operand (if its type is i32).
  NodeId integer_side() {
    constexpr double whole[] = {0, 1, -1, 2, 5, 100, 16777217};
    if (want_.indices && dice_.one_in(2)) return add(dice_.one_of(indices));
    if (dice_.one_in(3)) return program_.number(dice_.one_of(whole));
    return operands_.empty() ? number() : dice_.one_of(operands_);
  }

  NodeId comparison() {
    Op op = dice_.one_of(comparisons);
    if (dice_.one_in(3)) return add(op, {integer_side(), integer_side()});
    return add(op, {value(), value()});
  }

  NodeId condition() {
    if (!conditions_.empty() && dice_.one_in(2)) return dice_.one_of(conditions_);
    NodeId id = comparison();
    if (!conditions_.empty() && dice_.one_in(3)) {
      const Op op = dice_.one_in(2) ? Op::And : Op::Or;
      id = add(op, {id, dice_.one_of(conditions_)});
    }
    if (dice_.one_in(4)) id = add(Op::Not, {id});
    conditions_.push_back(id);
    return id;
  }

  void grow(int operations) {
    for (int k = 0; k < operations; ++k) values_.push_back(operation());
  }

  // One of the wanted kinds; plain arithmetic where a kind is not wanted.
  NodeId operation() {
    const Op reduction = dice_.one_of(plain_reductions), one = dice_.one_of(unary), two = dice_.one_of(binary);
    switch (dice_.below(16)) {
      case 0:
        if (want_.reductions && dice_.one_in(3)) return composed();
        if (want_.reductions && want_.conditions && want_.indices && dice_.one_in(6)) return one_term();
        if (want_.reductions && want_.groups && dice_.one_in(2)) return groups_.reduction(value());
        if (want_.reductions) return add(reduction, {value()});
        break;
      case 1:
      case 2:
        if (want_.conditions) return add(Op::Select, {condition(), value(), value()});
        break;
      case 3:
      case 4:
        if (want_.functions) return function();
        break;
      case 5:
        if (want_.rotations) return add(Op::Rotate, {value(), indices_.rotation()});
        break;
      case 6:
        if (want_.casts) return cast();
        break;
      case 7:
        if (want_.bound && want_.bits) return bits();
        break;
      case 8: return add(Op::Fma, {value(), value(), value()});
      case 9:
        if (want_.seeds && dice_.one_in(2)) return randomness();
        return add(Op::StopGradient, {value()});
      case 10:
      case 11: return add(one, {value()});
      default: break;
    }
    return add(two, {value(), value()});
  }

  // A sum of one column's value.
  NodeId one_term() {
    const NodeId index = add(Op::ColumnIndex, {}), column = integer_side(), value_there = value();
    const NodeId here = add(Op::Equal, {index, column});
    return add(Op::Sum, {add(Op::Select, {here, value_there, program_.number(0)})});
  }

  NodeId composed() {
    const std::size_t index = dice_.below(reductions().size());
    return add(reductions()[index].op, {value()}, static_cast<std::int64_t>(index));
  }

  NodeId function() {
    std::size_t index = dice_.below(functions().size());
    NodeId args[3];
    for (NodeId& arg : args) arg = value();
    return program_.add(Op::Call, std::span<const NodeId>(args, static_cast<std::size_t>(functions()[index].arity)),
                        static_cast<std::int64_t>(index));
  }

  NodeId cast() {
    NodeId arg = value();
    if (want_.bound) return add(Op::RoundTo, {arg}, static_cast<std::int64_t>(dice_.below(type_facts.size())));
    if (dice_.one_in(3)) return program_.symbol(Op::Largest, dice_.one_of(symbols_), {});
    return program_.symbol(Op::Cast, dice_.one_of(symbols_), std::span<const NodeId>(&arg, 1));
  }

  NodeId bits() {
    std::int64_t width = static_cast<std::int64_t>(8 * bytes(*program_.compute));
    std::int64_t by = static_cast<std::int64_t>(dice_.below(static_cast<std::size_t>(width)));
    switch (dice_.below(6)) {
      case 0: return add(Op::BitsAdd, {value(), value()});
      case 1: return add(Op::BitsAnd, {value(), value()});
      case 2: return add(Op::BitsOr, {value(), value()});
      case 3: return add(Op::BitsShiftLeft, {value()}, by);
      case 4: return add(Op::BitsShiftRight, {value()}, by);
      default: return add(Op::PickColumn, {value(), program_.add(Op::RowIndex)});
    }
  }

  void name_oddly() {
    constexpr std::string_view odd[] = {"", "exp", "x1", "y1", "c1", "n", "2x", "a b", "t1", "t3", "scale", "scale"};
    for (NodeId id = 0; id < program_.size(); ++id)
      if (dice_.one_in(4))
        program_.give_name(id,
                           dice_.one_in(2) ? std::string(dice_.one_of(odd)) : "v" + std::to_string(dice_.below(99)));
  }

  static constexpr Op indices[] = {Op::RowIndex, Op::ColumnIndex, Op::ColumnCount};
  static constexpr Op plain_reductions[] = {Op::Sum, Op::Mean, Op::Amax, Op::Amin};
  static constexpr Op comparisons[] = {Op::Less, Op::LessEqual, Op::Equal};
  static constexpr Op unary[] = {Op::Neg, Op::Abs, Op::Sqrt, Op::Floor, Op::Round};
  static constexpr Op binary[] = {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Min, Op::Max};

  const RandomProgram& want_;
  Dice dice_;
  Program program_;
  std::vector<std::size_t> constants_, counts_;  // indices of operands; counts are small positive integers
  RandomIndices indices_;
  RandomGroups groups_{program_, dice_, indices_};
  std::vector<Operand> made_constants_;
  std::vector<std::string> symbols_;
  std::vector<NodeId> values_, conditions_, operands_;
  NodeId seed_ = no_node;                      // never a value
  std::vector<NodeId> pickers_, own_pickers_;  // own: with a value for each row, which results are picked by
};

}  // namespace

Program random_program(const RandomProgram& options) { return Maker(options).run(); }

}  // namespace trireme
