#include "language/builder_state.hpp"

#include <bit>

#include "ir/signature_names.hpp"
#include "ir/verify.hpp"
#include "language/diagnostic.hpp"
#include "language/names.hpp"
#include "language/parse.hpp"
#include "language/print_expression.hpp"

namespace trireme {

void BuilderState::fail(const std::string& message) {
  if (!error) error = Error{Code::InvalidProgram, name + ": " + message};
}

Expr BuilderState::wrong() {
  Expr expr;
  expr.state_ = shared_from_this();
  expr.kind_ = Expr::Kind::Wrong;
  return expr;
}

Expr BuilderState::add(WrittenNode node) {
  // What is written twice counts twice here, and once in the program.
  if (nodes.size() >= 16 * max_nodes) {
    fail("more than " + std::to_string(16 * max_nodes) + " operations were written");
    return wrong();
  }
  Expr expr;
  expr.state_ = shared_from_this();
  expr.kind_ = Expr::Kind::Node;
  expr.node_ = static_cast<std::uint32_t>(nodes.size());
  nodes.push_back(std::move(node));
  return expr;
}

Expr BuilderState::number(double value) {
  return add({.op = Op::Number, .payload = std::bit_cast<std::int64_t>(value)});
}

// The node of an expression that is used in this program; nothing, and an error, if it is none of this program's.
std::optional<std::uint32_t> BuilderState::take(const Expr& expr, const std::string& user) {
  switch (expr.kind_) {
    case Expr::Kind::Number: return number(expr.number_).node_;
    case Expr::Kind::None: fail(user + " was given an Expr that was never made"); return std::nullopt;
    case Expr::Kind::Wrong:
      if (expr.state_ == nullptr)
        fail(user +
             " was given what came of plain numbers alone, or of an Expr that was never made; write "
             "builder.number(2) / 3");
      break;
    case Expr::Kind::Node: break;
  }
  if (expr.state_ && expr.state_.get() != this) {
    std::string mixed = user + " mixes the programs '" + name + "' and '" + expr.state_->name +
                        "': an expression belongs to the builder that made it";
    fail(mixed);
    expr.state_->fail(mixed);
    return std::nullopt;
  }
  if (expr.kind_ == Expr::Kind::Wrong) return std::nullopt;
  return expr.node_;
}

BuilderState* BuilderState::builder_of(std::span<const Expr> args) {
  for (const Expr& arg : args)
    if (arg.state_) return arg.state_.get();
  return nullptr;
}

// What belongs to no builder waits for one to be reported by.
Expr BuilderState::unowned() {
  Expr expr;
  expr.kind_ = Expr::Kind::Wrong;
  return expr;
}
std::optional<double> BuilderState::plain_number(const Expr& expr) {
  if (expr.kind_ != Expr::Kind::Number) return std::nullopt;
  return expr.number_;
}

bool BuilderState::check_argument(Op op, int k, std::uint32_t arg, const std::string& shown) {
  Op given = nodes[arg].op;
  bool comparison = op == Op::Less || op == Op::LessEqual || op == Op::Equal;
  if (nodes[arg].index) {
    fail(shown + " was given an index of groups or their entries, which only sum, mean, amax and amin take");
  } else if (is_column_reduction(given)) {
    fail(shown + " was given a " + std::string(facts(given).name) +
         ", which is the whole value of a result and nothing else's");
  } else if (takes_condition(op, k) && !is_condition(given)) {
    fail(shown + " needs a condition as its argument " + std::to_string(k + 1) + ", such as a < b");
  } else if (!takes_condition(op, k) && is_condition(given)) {
    fail(comparison ? "comparisons do not chain; write a < b && b < c"
                    : shown + " was given a condition as its argument " + std::to_string(k + 1) +
                          ", not a value; select(condition, 1, 0) makes one of it");
  } else {
    return true;
  }
  return false;
}

Expr BuilderState::operation(WrittenNode node, std::span<const Expr> args, const std::string& shown) {
  for (const Expr& arg : args) {
    auto taken = take(arg, shown);
    if (!taken || !check_argument(node.op, static_cast<int>(node.args.size()), *taken, shown)) return wrong();
    node.args.push_back(*taken);
  }
  return add(std::move(node));
}

// "x[i % heads, j]" to "x"; the brackets' inside is the parser's business, but nothing may follow them.
std::optional<std::string> BuilderState::name_of(std::string_view declaration) {
  std::size_t open = declaration.find('[');
  std::string_view found = declaration.substr(0, open);
  constexpr std::string_view inside = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-*/%(), ";
  bool good =
      open != std::string_view::npos && declaration.back() == ']' && is_plain_name(found) &&
      declaration.substr(0, declaration.size() - 1).find_first_not_of(inside, open + 1) == std::string_view::npos;
  if (good) return std::string(found);
  fail("'" + std::string(declaration.substr(0, max_name_bytes)) +
       "' declares nothing; write a name that is not reserved and its spread, such as x[i,j], gamma[j], rstd[i], "
       "scale[] or w[i % heads, j]");
  return std::nullopt;
}

bool BuilderState::define(const std::string& wanted, Name meaning) {
  if (names.emplace(wanted, meaning).second) return true;
  fail("'" + wanted + "' is already defined");
  return false;
}

Expr BuilderState::declare(const std::string& wanted, std::string_view declaration, Meaning meaning,
                           const Expr* default_value) {
  Op op = meaning == Meaning::Constant ? Op::Constant : Op::Operand;
  Expr expr = add({.op = op, .payload = static_cast<std::int64_t>(operands.size())});
  if (expr.kind_ != Expr::Kind::Node || !define(wanted, {meaning, expr.node_})) return wrong();
  operands.push_back({std::string(declaration)});
  if (default_value) this->default_value(wanted, *default_value);
  return expr;
}

Expr BuilderState::line(const std::string& target, const Expr& value) {
  auto taken = take(value, "'" + target + "'");
  if (!taken) return wrong();
  auto known = names.find(target);
  bool result = known != names.end() && known->second.meaning == Meaning::Result;
  if (known != names.end() && (!result || known->second.value)) {
    fail("'" + target + "' is already defined");
  } else if (!result && is_column_reduction(nodes[*taken].op)) {
    fail(std::string(facts(nodes[*taken].op).name) + " stands only as the whole value of a result, and '" + target +
         "' is none");
  } else if (!result && !is_plain_name(target)) {
    fail("'" + target.substr(0, max_name_bytes) + "' is no name for a line, or is reserved");
  } else {
    if (result) known->second.value = *taken;
    else names.emplace(target, Name{Meaning::Line, *taken});
    lines.push_back({target, *taken});
    return node(*taken);
  }
  return wrong();
}

void BuilderState::default_value(const std::string& target, const Expr& value) {
  auto known = names.find(target);
  bool declared_so =
      known != names.end() && (known->second.meaning == Meaning::Operand || known->second.meaning == Meaning::Constant);
  if (!declared_so)
    return fail("'" + target.substr(0, max_name_bytes) + "' is neither an operand nor a constant" +
                suggestion_for(target));
  Declared& declared = operands[static_cast<std::size_t>(nodes[*known->second.value].payload)];
  if (declared.default_value) return fail("'" + target + "' has a default already");
  declared.default_value = take(value, "the default of '" + target + "'");
  if (declared.default_value) lines.push_back({target, *declared.default_value});
}

Expr BuilderState::node(std::uint32_t id) {
  Expr expr = wrong();
  expr.kind_ = Expr::Kind::Node;
  expr.node_ = id;
  return expr;
}

std::string BuilderState::suggestion_for(std::string_view unknown) const {
  Suggestion suggestion(unknown);
  for (const auto& [known, meaning] : names) suggestion.consider(known);
  return suggestion.text();
}

namespace {

// Adds written nodes to a program, arguments first and from left to right, as the parser meets them.
class Lowering {
 public:
  Lowering(const BuilderState& state, Program& program)
      : state_(state), program_(program), names_(program), made_(state.nodes.size(), no_node) {}

  const SignatureNames& names() const { return names_; }

  Result<NodeId> run(std::uint32_t root) {
    std::vector<std::pair<std::uint32_t, std::size_t>> open = {{root, 0}};  // a node, how many arguments are done
    while (!open.empty()) {
      auto& [id, done] = open.back();
      const WrittenNode& node = state_.nodes[id];
      if (made_[id] == no_node && done < node.args.size()) {
        std::uint32_t next = node.args[done++];
        if (made_[next] == no_node) open.emplace_back(next, 0);
        continue;
      }
      if (made_[id] == no_node) TRIREME_CHECK(make(id));
      open.pop_back();
    }
    return made_[root];
  }

 private:
  Status make(std::uint32_t id) {
    const WrittenNode& node = state_.nodes[id];
    std::vector<NodeId> args;
    for (std::uint32_t arg : node.args) args.push_back(made_[arg]);
    if (node.swapped) std::swap(args[0], args[1]);
    if (program_.size() >= max_nodes)
      return Error{Code::InvalidProgram,
                   state_.name + ": the program has more than " + std::to_string(max_nodes) + " nodes"};
    if (node.op == Op::Number) {
      made_[id] = program_.number(std::bit_cast<double>(node.payload));
    } else if (node.symbol.empty()) {
      made_[id] = program_.add(node.op, args, node.payload);
    } else if (!names_.result(node.symbol) && !in_memory(node.symbol)) {
      return Error{Code::InvalidProgram, state_.name + ": " + std::string(facts(node.op).name) + " names '" +
                                             node.symbol + "', which is neither an operand in memory nor a result" +
                                             state_.suggestion_for(node.symbol)};
    } else {
      made_[id] = program_.symbol(node.op, node.symbol, args);
    }
    return Done{};
  }

  bool in_memory(std::string_view name) const {
    auto found = names_.operand(name);
    return found && !program_.operands[*found].constant;
  }

  const BuilderState& state_;
  Program& program_;
  SignatureNames names_;
  std::vector<NodeId> made_;
};

}  // namespace

Result<Program> BuilderState::program() const {
  if (error) return *error;
  auto wrong = [&](const std::string& message) { return Error{Code::InvalidProgram, name + ": " + message}; };
  if (results.empty()) return wrong("there is no result; declare one with result(\"y[i,j]\", value)");
  for (const auto& [each, meaning] : names)
    if (!meaning.value) return wrong("the result '" + each + "' is never assigned");

  std::string signature = name + "(";
  for (const Declared& each : operands) {
    signature += (&each == &operands[0] ? "" : ", ") + each.declaration;
    if (!each.default_value) continue;
    const WrittenNode& node = nodes[*each.default_value];
    signature += " = " + (node.op == Op::Number ? number_text(std::bit_cast<double>(node.payload)) : "...");
  }
  signature += ") -> (";
  for (const std::string& each : results) signature += (&each == &results[0] ? "" : ", ") + each;
  TRIREME_TRY(program, parse_signature(signature + ")"));

  Lowering lowering(*this, program);
  for (const Line& each : lines) {
    TRIREME_TRY(value, lowering.run(each.value));
    if (auto result = lowering.names().result(each.name)) program.results[*result].value = value;
    else if (auto operand = lowering.names().operand(each.name)) program.operands[*operand].fallback = value;
    else if (program[value].arity > 0) program.give_name(value, each.name);
  }
  TRIREME_CHECK(verify(program));
  return std::move(program);
}

}  // namespace trireme
