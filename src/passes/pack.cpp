// Arrays of f4e2m1 as arrays of bytes, and numbers of f4e2m1 as primitives: machines load, store and address bytes.
//
// A byte holds columns 2k and 2k + 1, the even one in its low half: an operand is read as bytes spread [i, j / 2], of
// which j says the half, and a result is the sum of both halves' codes over j / 2.
#include "ir/build.hpp"
#include "ir/groups.hpp"
#include "ir/rewrite.hpp"
#include "passes/passes.hpp"

namespace trireme {
namespace {

// A number saturated at 6; NaN is 6, too.
Formula saturated_at_6(Formula x) {
  const Formula most = x.number(6), least = x.number(-6);
  const Formula end = select(x < x.number(0), least, most);
  return select(abs(x) < most, x, end);
}

// Steps are 1/2 up to 2, 1 up to 4, and 2 beyond: one of three numbers, by where |x| lies.
class Range {
 public:
  explicit Range(Formula magnitude)
      : below_2_(magnitude < magnitude.number(2)), below_4_(magnitude < magnitude.number(4)) {}
  Formula chosen(double first, double second, double third) const {
    const Formula larger = select(below_4_, below_4_.number(second), below_4_.number(third));
    return select(below_2_, below_2_.number(first), larger);
  }

 private:
  Formula below_2_, below_4_;
};

// The pattern, 0 to 15, of a number: sign, two bits of exponent, one of mantissa.
Formula code_of(Formula x) {
  const Formula inside = saturated_at_6(x), magnitude = abs(inside);
  const Range range(magnitude);
  const Formula steps_a_unit = range.chosen(2, 1, 0.5), first_pattern = range.chosen(0, 2, 4);
  const Formula pattern = round(magnitude * steps_a_unit) + first_pattern;
  const Formula sign = bits_or(bits_and(inside, x.number(-0.0)), x.number(1));  // 1 or -1; a zero has one, too
  return pattern + fma(sign, -4, 4);
}

Formula number_of_code(Formula code) {
  const Formula positive = code < code.number(8);
  const Formula pattern = select(positive, code, code - 8);
  const Formula second = pattern - 2, third = pattern * 2 - 8;
  const Formula larger = select(pattern < pattern.number(6), second, third);
  const Formula magnitude = select(pattern < pattern.number(4), pattern * 0.5, larger);
  return select(positive, magnitude, -magnitude);
}

Formula rounded_to_f4(Formula x) {
  const Formula inside = saturated_at_6(x), magnitude = abs(inside);
  const Range range(magnitude);
  const Formula steps_a_unit = range.chosen(2, 1, 0.5), step = range.chosen(0.5, 1, 2);
  const Formula sign = bits_and(inside, x.number(-0.0));
  return bits_or(round(magnitude * steps_a_unit) * step, sign);
}

// 0 for even columns, 1 for odd ones.
Formula parity_of_column(Program& out) {
  const Formula j{&out, out.add(Op::ColumnIndex)};
  return j - floor(j * 0.5) * 2;
}

Formula read_half(Formula byte) {
  const Formula high = floor(byte * (1.0 / 16)), low = byte - high * 16, half = parity_of_column(*byte.program);
  return number_of_code(select(half < half.number(1), low, high));
}

Formula sum_of_halves(Formula value) {
  const Formula half = parity_of_column(*value.program);
  const Formula weight = select(half < half.number(1), half.number(1), half.number(16));
  const Formula part = code_of(value) * weight;
  const NodeId sum = add_group(*value.program, {.op = Op::Sum}, part.id, value.number(2).id);
  return {value.program, sum};
}

// Why an array spread so cannot be packed; empty where it can.
std::string_view why_not_packed(const Program::Array& array) {
  const Axis &row = array.spread.row, &column = array.spread.column;
  if (!column.present || !column.plain()) return "it has not one value for each column j";
  if (array.result && (!row.present || row.divided())) return "results that are sums over rows take other types";
  if (array.result && row.picked()) return "results whose rows are picked take other types";
  return "";
}

Status can_pack(const Program& program, const Program::Array& array, std::optional<std::int64_t> columns) {
  auto wrong = [&](const std::string& why) {
    return Error{Code::InvalidArgument, program.name + ": '" + array.name + "' is f4e2m1, two columns a byte: " + why};
  };
  if (const std::string_view why = why_not_packed(array); !why.empty()) return wrong(std::string(why));
  if (columns && *columns % 2) return wrong(std::to_string(*columns) + " columns are an odd number");
  if (columns && *columns > std::int64_t{1} << 24 && program.compute == Type::F32)
    return wrong("there may be up to 2^24 columns, not " + std::to_string(*columns));
  return Done{};
}

}  // namespace

bool can_be_packed(const Program::Array& array) { return why_not_packed(array).empty(); }

Result<Program> pack(const Program& program, std::optional<std::int64_t> columns) {
  bool any = false;
  for (std::size_t k = 0; k < program.array_count(); ++k)
    if (const Program::Array array = program.array(k); array.type && is_packed(*array.type)) {
      TRIREME_CHECK(can_pack(program, array, columns));
      any = true;
    }
  for (NodeId id = 0; id < program.size(); ++id)
    any = any || (program[id].op == Op::RoundTo && is_packed(static_cast<Type>(program[id].payload)));
  if (!any) return program;
  Program out = rewrite(program, [&](Program& made, const Node& node, std::span<const NodeId> args) {
    if (node.op == Op::RoundTo && is_packed(static_cast<Type>(node.payload))) return rounded_to_f4({&made, args[0]}).id;
    const NodeId id = copy_node(made, node, args);
    const bool is_operand = node.op == Op::Operand && is_packed(*program.operands[node.payload].type);
    return is_operand ? read_half({&made, id}).id : id;
  });
  const NodeId two = out.number(2);
  for (Operand& operand : out.operands)
    if (operand.type && is_packed(*operand.type)) {
      operand.type = Type::U8, operand.spread.column.divide = two;
      operand.fallback = no_node;  // a value a column, which bytes have not; nobody needs it any more
    }
  for (Output& result : out.results)
    if (result.type && is_packed(*result.type)) {
      result.type = Type::U8, result.spread.column.divide = two;
      result.value = sum_of_halves({&out, result.value}).id;
    }
  return out;
}

}  // namespace trireme
