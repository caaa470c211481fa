#include "plan/gradient_check.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/groups.hpp"
#include "ir/rewrite.hpp"
#include "language/parse.hpp"
#include "problem/problem_shape.hpp"
#include "problem/resolve.hpp"
#include "problem/samples.hpp"
#include "reference/oracle.hpp"

namespace trireme {
namespace {

// The reference runs a backward once and a forward five times.
constexpr std::int64_t most_elements = 1 << 18;

// Central differences lose h^2 f''' / 6 and gain rounding of 2^-53 |f| / h; both are alike at h = 2^-17 or so.
constexpr double step = 0x1p-16;
// What two steps, h and 2h, differ by is three times what h itself lacks: once over is enough where f''' is all.
constexpr double of_steps = 1;
// Well-conditioned results lie within 2^8 roundings, each 2^-53 of their size, in a difference of 2h; gradients within
// 2^23 of their terms. A wrong derivative is off by whole terms, of which there are fewer than 2^18.
constexpr double of_results = 0x1p8 * 0x1p-53 / step;
constexpr double of_terms = 0x1p-30;
// Where two steps differ by more than this part of the terms, an edge lies between them (a maximum that changes hands).
constexpr double smooth = 0x1p-10;

// What the line says of its forward: a gradient's type is its result's.
Problem forward_of(const Problem& line, const Program& forward) {
  Problem problem{
      .program = line.program, .shape = line.shape, .axes = line.axes, .constants = line.constants, .seed = line.seed};
  for (const auto& [name, type] : line.types) {
    if (forward.find_operand(name) || forward.find_result(name)) problem.types[name] = type;
    else if (name.starts_with('d') && forward.find_result(name.substr(1)))
      problem.types.try_emplace(name.substr(1), type);
  }
  for (const std::string& name : line.absent)
    if (forward.find_operand(name)) problem.absent.insert(name);
  for (const auto& [name, placement] : line.placements) {
    if (placement.rows < 0) continue;
    const bool of_result = !forward.find_operand(name) && name.starts_with('d') && forward.find_result(name.substr(1));
    problem.placements[of_result ? name.substr(1) : name].rows = placement.rows;
  }
  return problem;
}

// The same in f64, but for operands of integers; in a backward statistics are given. `types`: those of the forward.
Problem in_f64(const Problem& line, const Program& forward, const std::map<std::string, Type>& types, bool backward) {
  Problem problem = forward_of(line, forward);
  for (const auto& [name, type] : types)
    problem.types[name] = is_integer(type) && !forward.find_result(name) ? type : Type::F64;
  if (!backward) return problem;
  problem.backward = true;
  problem.gradients = line.gradients;
  for (const std::string& name : line.absent)
    if (!forward.find_result(name)) problem.absent.insert(name);
  return problem;
}

// largest(q) as the line's type of q has it: in f64 nothing is rounded to q, and what passes straight through is right.
// Nor is anything rounded to operands of integers, which keep their type.
Result<Program> with_types_named(const Program& program, const Binding& binding) {
  std::optional<Error> untyped;
  Program named = rewrite(program, [&](Program& out, const Node& node, std::span<const NodeId> args) {
    if (!names_symbol(node.op)) return copy_node(out, node, args);
    const std::string& name = program.symbols[node.payload];
    std::optional<Type> type;
    for (const auto* types : {&binding.types, &binding.types_of_absent})
      if (auto found = types->find(name); found != types->end() && !type) type = found->second;
    if (node.op != Op::Largest)
      return type && is_integer(*type) ? args[0] : out.symbol(node.op, program.symbols[node.payload], args);
    if (type) return out.number(facts(*type).largest);
    untyped = Error{Code::InvalidArgument, program.name + ": largest(" + name + ") needs a type for '" + name + "'"};
    return out.number(1);
  });
  if (untyped) return *untyped;
  return named;
}

// What stop_gradient holds, as operands that do not move, and the program that computes them.
struct Held {
  Program values, program;
  std::vector<std::string> names;
};

Held held(const Program& program) {
  Held made{.values = program};
  ColumnSpreads spreads(program);
  std::vector<NodeId> order;
  const std::vector<bool> wanted = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id)
    if (wanted[id]) order.push_back(id);
  std::vector<Operand> operands;
  std::vector<NodeId> moved(program.size(), no_node);
  std::size_t at = 0;
  made.program = rewrite_in_order(program, order, [&](Program& out, const Node& node, std::span<const NodeId> args) {
    const NodeId id = order[at++];
    if (node.op != Op::StopGradient) {
      const bool names = names_symbol(node.op);
      return moved[id] = names ? out.symbol(node.op, program.symbols[node.payload], args) : copy_node(out, node, args);
    }
    const ColumnSpread own = spreads[id];
    Spread spread{{true}, {!own.is_one()}};
    if (own.is_group()) (own.wraps ? spread.column.wrap : spread.column.divide) = own.by;
    std::string name = "held_" + std::to_string(made.names.size());
    while (program.find_operand(name) || program.find_result(name)) name += '_';
    made.names.push_back(name);
    made.values.results.push_back({made.names.back(), spread, node.args[0]});
    if (own.is_group()) (own.wraps ? spread.column.wrap : spread.column.divide) = moved[own.by];
    operands.push_back({.name = made.names.back(), .spread = spread});
    out.operands.push_back(operands.back());  // its place; the spread follows when all are there
    return moved[id] = out.add(Op::Operand, {}, static_cast<std::int64_t>(out.operands.size() - 1));
  });
  return made;
}

// A program in f64 with its memory.
class Run {
 public:
  static Result<Run> make(const Problem& problem, const Remarks& remarks, const Program& forward,
                          const Program& program) {
    Run run;
    TRIREME_TRY(binding, binding_of(problem, forward, program));
    TRIREME_TRY(prepared, prepare(program, binding));
    static_cast<PreparedProgram&>(run.resolved_) = std::move(prepared);
    run.resolved_.problem = problem, run.resolved_.remarks = remarks, run.resolved_.program = program;
    TRIREME_TRY(buffers, sampled_buffers(run.resolved_));
    run.buffers_ = std::move(buffers);
    return run;
  }

  Status run() {
    for (Buffer& each : buffers_.results) std::fill(each.memory.begin(), each.memory.end(), std::byte{0});
    const std::vector<Array> arrays = buffers_.arrays();
    const Problem& problem = resolved_.problem;
    return run_reference(
        resolved_.expanded,
        {.rows = problem.rows(), .columns = problem.columns(), .constants = resolved_.constants, .arrays = arrays});
  }

  // How far each result may lie from exact mathematics, as it is at hand; infinity where nobody knows.
  Result<std::map<std::string, std::vector<double>>> errors() const {
    const std::vector<Array> arrays = buffers_.arrays();
    const Problem& problem = resolved_.problem;
    TRIREME_TRY(oracle, run_oracle(resolved_.bound, {.rows = problem.rows(),
                                                     .columns = problem.columns(),
                                                     .constants = resolved_.constants,
                                                     .arrays = arrays}));
    std::map<std::string, std::vector<double>> errors;
    for (std::size_t k = 0; k < oracle.size(); ++k)
      for (const OracleElement& each : oracle[k].elements)
        errors[resolved_.bound.results[k].name].push_back(each.unknown ? HUGE_VAL : each.tolerance());
    return errors;
  }

  // Samples depend on what a program does with an operand: one that picks rows is a row.
  void take_operand(const Run& other, const std::string& name) {
    const std::optional<std::size_t> own = resolved_.bound.find_operand(name);
    const std::optional<std::size_t> others = other.resolved_.bound.find_operand(name);
    if (!own || !others) return;
    const auto& from = other.buffers_.operands[*others].memory;
    auto& to = buffers_.operands[*own].memory;
    if (from.size() == to.size()) std::copy(from.begin(), from.end(), to.begin());
  }

  // Numbers of an array in f64; none where it is not there, or of integers.
  std::span<double> operand(const std::string& name) {
    const std::optional<std::size_t> k = resolved_.bound.find_operand(name);
    return k ? numbers(buffers_.operands[*k]) : std::span<double>();
  }
  std::span<double> result(const std::string& name) {
    const std::optional<std::size_t> k = resolved_.bound.find_result(name);
    return k ? numbers(buffers_.results[*k]) : std::span<double>();
  }

 private:
  static std::span<double> numbers(Buffer& buffer) {
    if (buffer.array.type != Type::F64 || buffer.memory.empty()) return {};
    return {reinterpret_cast<double*>(buffer.memory.data()), static_cast<std::size_t>(buffer.entries())};
  }

  ResolvedProblem resolved_;
  Buffers buffers_;
};

struct Displaced {
  std::string name;
  std::span<double> operand;  // of the forward
  std::vector<double> values, direction;
};

// A part of each value, so that none changes its sign: relu and abs have an edge at 0, log an end.
Displaced moved(std::span<double> operand, std::uint32_t seed, const std::string& name) {
  Displaced made{name, operand, {operand.begin(), operand.end()}, {}};
  for (std::size_t k = 0; k < operand.size(); ++k)
    made.direction.push_back(std::fabs(operand[k]) *
                             sample_value(sample_draw(seed, "v of " + name, k), Type::F64, {-1, 1}));
  return made;
}

class Checker {
 public:
  Checker(Run& forward, Run& backward) : forward_(forward), backward_(backward) {}

  Result<GradientCheck> check(const Program& program, const std::set<std::string>& gradients, std::uint32_t seed) {
    TRIREME_CHECK(forward_.run());
    for (const Operand& each : program.operands) backward_.take_operand(forward_, each.name);
    for (const Output& each : program.results) {
      const std::span<double> made = forward_.result(each.name), saved = backward_.operand(each.name);
      std::copy_n(made.begin(), std::min(made.size(), saved.size()), saved.begin());
    }
    TRIREME_CHECK(backward_.run());
    double derivative = 0, terms = 0, results = 0;
    for (const Operand& each : program.operands) {
      const std::span<double> gradient = backward_.result("d" + each.name), operand = forward_.operand(each.name);
      if (gradient.empty() || gradient.size() != operand.size()) continue;
      moved_.push_back(moved(operand, seed, each.name));
      for (std::size_t k = 0; k < gradient.size(); ++k) {
        const double term = gradient[k] * moved_.back().direction[k];
        derivative += term, terms += std::fabs(term);
      }
    }
    if (moved_.empty()) return GradientCheck{"no operand of floating point has a gradient"};
    for (const std::string& name : gradients) {
      const std::span<double> result = forward_.result(name), weights = backward_.operand("d" + name);
      if (weights.empty()) continue;
      weighed_.push_back({name, result, weights});
      weights_.insert(weights_.end(), weights.begin(), weights.end());
      weights_.resize(weights_.size() - weights.size() + result.size());  // tables may have rows of their own
      for (std::size_t k = 0; k < result.size(); ++k) results += std::fabs(result[k] * weights[k]);
    }
    TRIREME_TRY(wide, slope(2 * step, terms));
    TRIREME_TRY(narrow, slope(step, terms));
    GradientCheck found{.derivative = derivative, .difference = narrow};
    found.bound = of_steps * std::fabs(wide - narrow) + of_results * results + of_terms * terms;
    if (!std::isfinite(derivative) || !std::isfinite(narrow) || !std::isfinite(found.bound))
      found.skipped = "values are not finite";
    else if (std::fabs(wide - narrow) > smooth * terms)
      found.skipped = "the results have an edge where they are looked at";
    if (found.fine()) return found;
    // Where a value stands on an edge itself (min(x, 2) at 2), differences take the mean of both sides' slopes at any
    // step.
    TRIREME_TRY(jump, jumps());
    if (!(found.error() > found.bound + jump / 2)) {
      found.skipped = "the results have an edge where they are looked at";
      return found;
    }
    TRIREME_TRY(by_rounding, roundings());
    if (!(found.error() > found.bound + by_rounding)) found.skipped = "what f64 rounds away hides the slope";
    return found;
  }

 private:
  struct Weighed {
    std::string name;
    std::span<const double> result, weights;
  };

  // What the roundings of f64 may have added, by the oracle: of results that cancel all there is. In a difference they
  // count 1 / h times.
  Result<double> roundings() {
    TRIREME_CHECK(run_at(0));
    auto of_results = forward_.errors(), of_gradients = backward_.errors();
    if (!of_results || !of_gradients) return HUGE_VAL;
    double sum = 0;
    for (const Weighed& each : weighed_)
      for (std::size_t k = 0; k < each.weights.size(); ++k)
        sum += std::fabs(each.weights[k]) * (*of_results)[each.name][k] / step;
    for (const Displaced& each : moved_)
      for (std::size_t k = 0; k < each.direction.size(); ++k)
        sum += std::fabs(each.direction[k]) * (*of_gradients)["d" + each.name][k];
    return sum;
  }

  // (f(x + h v) - f(x - h v)) / 2h. Where the terms of a derivative are all 0, those of the difference count.
  Result<double> slope(double h, double& terms) {
    TRIREME_TRY(above, results_at(h));
    TRIREME_TRY(below, results_at(-h));
    double slope = 0, size = 0;
    for (std::size_t k = 0; k < above.size(); ++k) {
      const double term = weights_[k] * (above[k] - below[k]) / (2 * h);
      slope += term, size += std::fabs(term);
    }
    terms = std::max(terms, size);
    return slope;
  }

  // How far the slopes on both sides of the values are apart. What a curve's are differs by twice as much two steps
  // away.
  Result<double> jumps() {
    TRIREME_TRY(here, results_at(0));
    std::vector<double> jump(here.size());
    for (double steps : {1.0, 2.0}) {
      TRIREME_TRY(above, results_at(steps * step));
      TRIREME_TRY(below, results_at(-steps * step));
      for (std::size_t k = 0; k < here.size(); ++k) {
        const double sides = ((above[k] - here[k]) - (here[k] - below[k])) / (steps * step);
        jump[k] += steps == 1 ? 2 * sides : -sides;
      }
    }
    double sum = 0;
    for (std::size_t k = 0; k < jump.size(); ++k) sum += std::fabs(weights_[k] * jump[k]);
    return sum;
  }

  // Of all results that have weights.
  Result<std::vector<double>> results_at(double h) {
    TRIREME_CHECK(run_at(h));
    std::vector<double> results;
    for (const Weighed& each : weighed_) results.insert(results.end(), each.result.begin(), each.result.end());
    return results;
  }

  Status run_at(double h) {
    for (Displaced& each : moved_)
      for (std::size_t k = 0; k < each.values.size(); ++k) each.operand[k] = each.values[k] + h * each.direction[k];
    return forward_.run();
  }

  Run &forward_, &backward_;
  std::vector<Displaced> moved_;
  std::vector<Weighed> weighed_;
  std::vector<double> weights_;  // of all of them
};

}  // namespace

namespace {

Result<GradientCheck> checked(const Problem& line, std::string_view text, const Program* backward) {
  TRIREME_TRY(forward, parse(text));
  TRIREME_TRY(remarks, parse_remarks(text));
  TRIREME_TRY(types, binding_of(forward_of(line, forward), forward, forward));
  Problem one_way = in_f64(line, forward, types.types, false);
  const Problem other_way = in_f64(line, forward, types.types, true);
  Program derived;
  if (!backward) {
    TRIREME_TRY(made, backward_of(other_way, forward));
    derived = std::move(made);
    backward = &derived;
  }
  Problem as_said = line;
  as_said.accumulate.clear(), as_said.row_block = 0;
  TRIREME_TRY(backward_types, binding_of(as_said, forward, *backward));
  TRIREME_TRY(named_forward, with_types_named(forward, types));
  TRIREME_TRY(named_backward, with_types_named(*backward, backward_types));
  const Held parts = held(named_forward);
  for (const std::string& name : parts.names) one_way.types[name] = Type::F64;
  TRIREME_TRY(forward_run, Run::make(one_way, remarks, forward, parts.program));
  TRIREME_TRY(backward_run, Run::make(other_way, remarks, forward, named_backward));
  if (!parts.names.empty()) {
    TRIREME_TRY(held_run, Run::make(one_way, remarks, forward, parts.values));
    TRIREME_CHECK(held_run.run());
    for (const std::string& name : parts.names) {
      const std::span<double> value = held_run.result(name), operand = forward_run.operand(name);
      std::copy_n(value.begin(), std::min(value.size(), operand.size()), operand.begin());
    }
  }
  return Checker(forward_run, backward_run).check(forward, *options_for(forward, *backward, {}).gradients, line.seed);
}

}  // namespace

Result<GradientCheck> check_gradient(const Problem& line, std::string_view text, const Program* backward) {
  if (line.rows() * line.columns() > most_elements)
    return GradientCheck{"slow beyond " + std::to_string(most_elements) + " elements"};
  Result<GradientCheck> check = checked(line, text, backward);
  if (check || check.error().code == Code::OutOfMemory) return check;
  return GradientCheck{check.error().message};  // a constant that the backward does not ask for has no value, say
}

}  // namespace trireme
