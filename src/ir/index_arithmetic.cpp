#include "ir/index_arithmetic.hpp"

#include <charconv>
#include <cmath>

namespace trireme {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 53;

class IndexArithmetic {
 public:
  using Value = Result<std::optional<std::int64_t>>;

  IndexArithmetic(const Program& program, const KnownLeaves& known, std::string_view what)
      : program_(program), known_(known), what_(what) {}

  Value value(NodeId id) const {
    const Node& node = program_[id];
    if (node.op == Op::Number) return whole(node.number());
    if (node.op == Op::ColumnCount) return known_.columns;
    if (node.op == Op::Constant) {
      bool given = static_cast<std::size_t>(node.payload) < known_.constants.size();
      return given ? whole(known_.constants[node.payload]) : std::optional<std::int64_t>();
    }
    bool arithmetic = node.op == Op::Neg || (node.op >= Op::Add && node.op <= Op::Div);
    if (!arithmetic) return wrong("made with '" + std::string(facts(node.op).name) + "'");
    TRIREME_TRY(a, value(node.args[0]));
    if (node.op == Op::Neg) return a ? std::optional(-*a) : a;
    TRIREME_TRY(b, value(node.args[1]));
    if (node.op == Op::Div && b == 0) return wrong(a ? std::to_string(*a) + " / 0" : "a quotient by 0");
    return a && b ? step(node.op, *a, *b) : std::optional<std::int64_t>();
  }

 private:
  Error wrong(const std::string& found) const { return {Code::InvalidArgument, std::string(what_) + ", not " + found}; }

  Value whole(double number) const {
    if (std::fabs(number) <= most && std::floor(number) == number) return std::optional(std::int64_t(number));
    char text[32];
    return wrong(std::string(text, std::to_chars(text, text + sizeof text, number).ptr));
  }

  Value step(Op op, std::int64_t a, std::int64_t b) const {
    auto shown = [&] { return std::to_string(a) + " " + std::string(facts(op).name) + " " + std::to_string(b); };
    if (op == Op::Div) return a % b == 0 ? Value(a / b) : wrong(shown());
    std::int64_t made = op == Op::Sub ? a - b : a + b;
    bool beyond = op == Op::Mul && __builtin_mul_overflow(a, b, &made);
    return beyond || made > most || made < -most ? wrong(shown() + ", which is beyond 2^53") : Value(made);
  }

  const Program& program_;
  const KnownLeaves& known_;
  std::string_view what_;
};

}  // namespace

Result<std::optional<std::int64_t>> index_value(const Program& program, NodeId id, const KnownLeaves& known,
                                                std::string_view what) {
  return IndexArithmetic(program, known, what).value(id);
}

Result<std::int64_t> index_constant(const Program& program, NodeId id, const KnownLeaves& known,
                                    std::string_view what) {
  TRIREME_TRY(value, index_value(program, id, known, what));
  if (value) return *value;
  return Error{Code::InvalidArgument, std::string(what) + ", not one of constants or of an n that is not known"};
}

Status check_divisor(const Program& program, NodeId id) {
  TRIREME_TRY(value, index_value(program, id, {}, a_divisor));
  if (!value || *value > 0) return Done{};
  return Error{Code::InvalidArgument, std::string(a_divisor) + ", not " + std::to_string(*value)};
}

FirstPlace first_place(const Program& program, const Node& random) {
  if (random.arity == 1) return {};
  auto number = [&](int k) { return static_cast<std::int64_t>(program[random.args[k]].number()); };
  return {number(1), number(2)};
}

Status check_first(const Program& program, NodeId first, bool is_row) {
  const std::string_view what = is_row ? a_first_row : a_first_column;
  TRIREME_TRY(value, index_value(program, first, {}, what));
  if (!value || (*value >= 0 && *value <= (is_row ? most : most_first_column))) return Done{};
  return Error{Code::InvalidArgument, std::string(what) + ", not " + std::to_string(*value)};
}

}  // namespace trireme
