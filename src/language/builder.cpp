#include "trireme/builder.hpp"

#include <algorithm>

#include "ir/groups.hpp"
#include "language/builder_state.hpp"
#include "language/diagnostic.hpp"
#include "language/names.hpp"
#include "language/print.hpp"
#include "support/out_of_memory.hpp"

namespace trireme {

ProgramBuilder::ProgramBuilder(std::string_view name) : state_(std::make_shared<BuilderState>()) {
  state_->name = name;
  if (is_word(name) || !(is_plain_name(name) || callable_named(name)))
    state_->fail("'" + state_->name.substr(0, max_name_bytes) + "' is no name for a program");
}

Expr ProgramBuilder::operand(std::string_view declaration) {
  auto name = state_->name_of(declaration);
  return name ? state_->declare(*name, declaration, BuilderState::Meaning::Operand, nullptr) : state_->wrong();
}

Expr ProgramBuilder::operand(std::string_view declaration, Expr default_value) {
  auto name = state_->name_of(declaration);
  return name ? state_->declare(*name, declaration, BuilderState::Meaning::Operand, &default_value) : state_->wrong();
}

Expr ProgramBuilder::constant(std::string_view name) {
  std::string text(name);
  if (!is_plain_name(name)) state_->fail("'" + text.substr(0, max_name_bytes) + "' is no name for a constant");
  return state_->declare(text, name, BuilderState::Meaning::Constant, nullptr);
}

Expr ProgramBuilder::constant(std::string_view name, double default_value) {
  std::string text(name);
  if (!is_plain_name(name)) state_->fail("'" + text.substr(0, max_name_bytes) + "' is no name for a constant");
  Expr number = default_value;
  return state_->declare(text, name, BuilderState::Meaning::Constant, &number);
}

void ProgramBuilder::default_value(std::string_view operand, Expr value) {
  state_->default_value(std::string(operand), value);
}

void ProgramBuilder::result(std::string_view declaration) {
  auto name = state_->name_of(declaration);
  if (name && state_->define(*name, {BuilderState::Meaning::Result})) state_->results.emplace_back(declaration);
}

Expr ProgramBuilder::result(std::string_view declaration, Expr value) {
  result(declaration);
  auto name = state_->name_of(declaration);
  return name ? state_->line(*name, value) : state_->wrong();
}

Expr ProgramBuilder::line(std::string_view name, Expr value) { return state_->line(std::string(name), value); }

Expr ProgramBuilder::operator[](std::string_view name) const {
  auto known = state_->names.find(std::string(name));
  if (known != state_->names.end() && known->second.value) return state_->node(*known->second.value);
  std::string shown = "'" + std::string(name.substr(0, max_name_bytes)) + "'";
  state_->fail(known == state_->names.end() ? "unknown name " + shown + state_->suggestion_for(name)
                                            : "the result " + shown + " is used before it is assigned");
  return state_->wrong();
}

Expr ProgramBuilder::i() const { return state_->add({.op = Op::RowIndex}); }
Expr ProgramBuilder::j() const { return state_->add({.op = Op::ColumnIndex}); }
Expr ProgramBuilder::n() const { return state_->add({.op = Op::ColumnCount}); }
Expr ProgramBuilder::number(double value) const { return state_->number(value); }

Expr ProgramBuilder::largest(std::string_view symbol) const {
  if (symbol.empty()) state_->fail("largest needs the name of an operand or result");
  return state_->add({.op = Op::Largest, .symbol = std::string(symbol)});
}

Result<std::string> ProgramBuilder::text() const {
  return or_out_of_memory([&]() -> Result<std::string> {
    TRIREME_TRY(program, state_->program());
    return print(program);
  });
}

namespace {

Expr binary(Op op, const char* sign, const Expr& a, const Expr& b, bool swapped = false) {
  const Expr args[] = {a, b};
  BuilderState* state = BuilderState::builder_of(args);
  if (!state) return BuilderState::unowned();
  return state->operation({.op = op, .swapped = swapped}, args, sign);
}

Expr unary(Op op, const char* sign, const Expr& a) {
  BuilderState* state = BuilderState::builder_of({&a, 1});
  if (!state) return BuilderState::unowned();
  return state->operation({.op = op}, {&a, 1}, sign);
}

}  // namespace

Expr operator+(const Expr& a, const Expr& b) { return binary(Op::Add, "'+'", a, b); }
Expr operator-(const Expr& a, const Expr& b) { return binary(Op::Sub, "'-'", a, b); }
Expr operator*(const Expr& a, const Expr& b) { return binary(Op::Mul, "'*'", a, b); }
Expr operator/(const Expr& a, const Expr& b) { return binary(Op::Div, "'/'", a, b); }
Expr operator%(const Expr& a, const Expr& b) {
  const Expr args[] = {a, b};
  BuilderState* state = BuilderState::builder_of(args);
  if (!state) return BuilderState::unowned();
  return state->operation({.op = Op::Div, .index = true}, args, "'%'");
}
Expr operator<(const Expr& a, const Expr& b) { return binary(Op::Less, "'<'", a, b); }
Expr operator<=(const Expr& a, const Expr& b) { return binary(Op::LessEqual, "'<='", a, b); }
Expr operator>(const Expr& a, const Expr& b) { return binary(Op::Less, "'>'", a, b, true); }
Expr operator>=(const Expr& a, const Expr& b) { return binary(Op::LessEqual, "'>='", a, b, true); }
Expr operator==(const Expr& a, const Expr& b) { return binary(Op::Equal, "'=='", a, b); }
Expr operator!=(const Expr& a, const Expr& b) { return !binary(Op::Equal, "'!='", a, b); }
Expr operator&&(const Expr& a, const Expr& b) { return binary(Op::And, "'&&'", a, b); }
Expr operator||(const Expr& a, const Expr& b) { return binary(Op::Or, "'||'", a, b); }
Expr operator!(const Expr& a) { return unary(Op::Not, "'!'", a); }

Expr operator-(const Expr& a) {
  if (auto number = BuilderState::plain_number(a)) return -*number;  // the number's sign, as in text
  return unary(Op::Neg, "'-'", a);
}

Expr call(std::string_view function, std::span<const Expr> args) {
  BuilderState* state = BuilderState::builder_of(args);
  if (!state) return BuilderState::unowned();
  std::string shown = "'" + std::string(function.substr(0, max_name_bytes)) + "'";
  auto callable = callable_named(function);
  const bool reduces = callable && std::find(group_ops.begin(), group_ops.end(), callable->op) != group_ops.end();
  if ((reduces || function == "entries") && (args.size() == 1 || args.size() == 2))
    return state->reduction(reduces ? callable->op : Op::Group, args, shown);
  bool by_name = callable && callable->form == CallForm::WithSymbol;
  bool of_bound_programs = callable && (callable->form == CallForm::WithCount || callable->form == CallForm::WithType ||
                                        callable->op == Op::PickColumn || callable->op == Op::BitsAdd ||
                                        callable->op == Op::BitsAnd || callable->op == Op::BitsOr);
  if (!callable) {
    Suggestion suggestion(function);
    for (std::string_view known : callable_names()) suggestion.consider(known);
    state->fail("unknown function " + shown + suggestion.text());
  } else if (by_name) {
    state->fail(shown + " takes the name of an operand or result: cast(value, \"x\"), builder.largest(\"q\")");
  } else if (callable->form == CallForm::WithStream) {
    state->fail(shown + " takes the number of a stream: random(seed, 0)");
  } else if (of_bound_programs) {
    state->fail(shown + " belongs to bound programs, whose compute type is known");
  } else if (args.size() != static_cast<std::size_t>(callable->arity)) {
    state->fail(shown + " takes " + std::to_string(callable->arity) +
                (callable->arity == 1 ? " argument" : " arguments") + ", found " + std::to_string(args.size()));
  } else {
    return state->operation({.op = callable->op, .payload = callable->payload}, args, shown);
  }
  return state->wrong();
}

Expr cast(const Expr& a, std::string_view symbol) {
  BuilderState* state = BuilderState::builder_of({&a, 1});
  if (!state) return BuilderState::unowned();
  if (symbol.empty()) state->fail("cast needs the name of an operand or result");
  return state->operation({.op = Op::Cast, .symbol = std::string(symbol)}, {&a, 1}, "'cast'");
}

Expr cast_stochastic(const Expr& a, std::string_view symbol, const Expr& random) {
  const Expr args[] = {a, random};
  BuilderState* state = BuilderState::builder_of(args);
  if (!state) return BuilderState::unowned();
  if (symbol.empty()) state->fail("cast_stochastic needs the name of an operand or result");
  return state->operation({.op = Op::CastStochastic, .symbol = std::string(symbol)}, args, "'cast_stochastic'");
}

Expr random(const Expr& seed, std::uint32_t stream) {
  BuilderState* state = BuilderState::builder_of({&seed, 1});
  if (!state) return BuilderState::unowned();
  return state->operation({.op = Op::Random, .payload = stream}, {&seed, 1}, "'random'");
}

Expr random(const Expr& seed, std::uint32_t stream, const Expr& first_row, const Expr& first_column) {
  const Expr args[] = {seed, first_row, first_column};
  BuilderState* state = BuilderState::builder_of(args);
  if (!state) return BuilderState::unowned();
  return state->operation({.op = Op::Random, .payload = stream}, args, "'random'");
}

}  // namespace trireme
