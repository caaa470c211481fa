// From options to a plan.
#include <algorithm>

#include "devices/arguments.hpp"
#include "devices/parallel.hpp"
#include "language/diagnostic.hpp"
#include "layout/elements.hpp"
#include "layout/flatten.hpp"
#include "passes/passes.hpp"
#include "plan/plan_state.hpp"
#include "plan/settings.hpp"
#include "plan/threads.hpp"
#include "plan/tune.hpp"
#include "problem/resolve.hpp"
#include "support/environment.hpp"
#include "support/out_of_memory.hpp"

namespace trireme {
namespace {

Error invalid(std::string message) { return {Code::InvalidArgument, std::move(message)}; }

Status check_shape(const PlanOptions& options) {
  const Dims& shape = options.shape;
  if (shape.empty() || shape.size() > max_rank)
    return invalid("a problem's shape has 1 to 8 axes, not " + std::to_string(shape.size()));
  if (options.axes.count < 1 || options.axes.count > static_cast<int>(shape.size()))
    return invalid("the last 1 to " + std::to_string(shape.size()) + " axes of " + print(shape) +
                   " can make a row, not the last " + std::to_string(options.axes.count));
  std::int64_t left = std::int64_t{1} << 57;  // elements; beyond, bytes could not be counted
  for (std::size_t k = 0; k < shape.size(); ++k) {
    if (shape[k] < 0) return invalid("the shape " + print(shape) + " has a negative extent");
    if (shape[k] == 0 && k + options.axes.count >= shape.size())
      return invalid("the shape " + print(shape) +
                     " has rows of no columns; at least one is needed (zero rows are fine)");
    if (shape[k] > left) return invalid("the shape " + print(shape) + " has more than 2^57 elements");
    left /= std::max<std::int64_t>(shape[k], 1);
  }
  return Done{};
}

// A backward that fits what is absent: where a default that is an expression takes an operand's place, the gradient
// flows on into it.
Result<RowProgram> fitting(const PlanOptions& options) {
  if (!options.program.is_backward()) return options.program;
  DifferentiateOptions wanted = options_for(options.program.forward(), options.program.graph(), options.absent);
  return wanted.absent.empty() ? options.program : options.program.source().differentiate(wanted);
}

Result<Problem> problem_of(const PlanOptions& options, const RowProgram& row_program) {
  Problem problem;
  const Program& program = row_program.graph();
  problem.program = options.program.forward().name;
  problem.shape.assign(options.shape.begin(), options.shape.end());
  problem.axes = options.axes.count;
  problem.backward = options.program.is_backward();
  if (problem.backward) problem.gradients = unusual_gradients(options.program);
  problem.types = options.types;
  problem.absent = options.absent;
  problem.constants = options.constants;
  problem.accumulate = options.accumulate;
  problem.row_block = options.row_block;
  for (const auto& [name, strides] : options.strides) problem.placements[name] = {.strides = strides};
  if (!options.results) return problem;
  for (const std::string& name : *options.results) {
    if (program.find_result(name)) continue;
    Suggestion suggestion(name);
    for (const Output& result : program.results) suggestion.consider(result.name);
    return invalid(program.name + " has no result '" + name + "'" + suggestion.text());
  }
  for (const Output& result : program.results)
    if (!options.results->contains(result.name)) problem.absent.insert(result.name);
  return problem;
}

// `i`, `j` and `n` are numbers up to 2^31.
Status check_indices(const PlanState& plan) {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  std::vector<bool> used(plan.program.size());
  for (const Output& result : plan.program.results) used[result.value] = true;
  for (NodeId id = static_cast<NodeId>(plan.program.size()); id-- > 0;) {
    if (!used[id]) continue;
    const Node& node = plan.program[id];
    for (NodeId arg : node) used[arg] = true;
    if (node.op == Op::RowIndex && plan.rows > most)
      return plan.wrong(Code::InvalidArgument, "the program computes with i, and there are more than 2^31 rows");
    if ((node.op == Op::ColumnIndex || node.op == Op::ColumnCount || node.op == Op::Random) && plan.columns > most)
      return plan.wrong(Code::InvalidArgument,
                        "the program computes with j or n, and there are more than 2^31 columns");
  }
  return Done{};
}

class Creator {
 public:
  Creator(const Device& device, const PlanOptions& options) : options_(options), plan_{.device = device} {}

  Result<std::shared_ptr<const PlanState>> create() {
    if (!options_.program) return invalid("a plan needs a program");
    TRIREME_CHECK(check_shape(options_));
    TRIREME_TRY(program, fitting(options_));
    program_ = program;
    TRIREME_TRY(problem, problem_of(options_, program_));
    plan_.line = print(problem);
    TRIREME_TRY(binding, binding_of(problem, options_.program.forward(), program_.graph()));
    TRIREME_CHECK(with_line(bind_program(binding)));
    describe_problem(problem);
    TRIREME_CHECK(check_indices(plan_));
    TRIREME_CHECK(add_arrays());
    TRIREME_CHECK(place_results());
    TRIREME_CHECK(take_strides());
    TRIREME_CHECK(choose_threads());
    TRIREME_CHECK(with_line(compile()));
    if (options_.max_workspace_bytes && plan_.memory.workspace > *options_.max_workspace_bytes)
      return plan_.wrong(Code::Unsupported, "the plan needs a workspace of " + std::to_string(plan_.memory.workspace) +
                                                " bytes, and " + std::to_string(*options_.max_workspace_bytes) +
                                                " are allowed");
    return std::make_shared<const PlanState>(std::move(plan_));
  }

 private:
  Status with_line(Status status) const {
    if (status || status.error().message.find("problem line") != std::string::npos) return status;
    return plan_.wrong(status.error().code, status.error().message);
  }

  Status bind_program(const Binding& binding) {
    TRIREME_TRY(prepared, trireme::prepare(program_.graph(), binding));
    plan_.constants = std::move(prepared.constants);
    plan_.program = std::move(prepared.expanded);
    bound_ = std::move(prepared.bound);
    return Done{};
  }

  void describe_problem(const Problem& problem) {
    plan_.source_name = options_.program.forward().name;
    plan_.backward = options_.program.is_backward();
    plan_.shape = options_.shape;
    plan_.axes = options_.axes.count;
    plan_.rows = problem.rows();
    plan_.columns = problem.columns();
  }

  Status add_arrays() {
    std::vector<bool> read = read_operands(plan_.program);
    for (std::size_t k = 0; k < plan_.program.array_count(); ++k) {
      const Program::Array what = bound_.array(k);
      if (!what.in_memory) continue;
      TRIREME_CHECK(add_array(what, k));
      plan_.arrays.back().needed = what.result || read[k];
    }
    return Done{};
  }

  Status add_array(const Program::Array& what, std::size_t number) {
    PlanArray array{.name = what.name, .result = what.result, .number = number, .type = *what.type};
    Result<Indexing> where = indexing(bound_, what.spread, plan_.columns, plan_.constants);
    if (!where) return plan_.wrong(where.error().code, what.name + ": " + where.error().message);
    array.indexing = *where;
    array.rows = where->row.extent(plan_.rows);
    array.columns = columns_in_bytes(array.type, where->column.extent(plan_.columns));
    array.axes = axes_of(*where, plan_.shape, plan_.axes);
    array.strides = contiguous_strides(array.shape());
    if (const Dims& last = array.axes.columns; is_packed(array.type) && last[last.size() - 1] % 2)
      return plan_.wrong(Code::InvalidArgument, array.name + ": " + std::string(odd_last_axis));
    plan_.arrays.push_back(std::move(array));
    return Done{};
  }

  bool is_rotated(std::size_t operand) const {
    const Program& program = plan_.program;
    std::vector<bool> used = reachable(program), holds(program.size());
    for (NodeId id = 0; id < program.size(); ++id) {
      const Node& node = program[id];
      holds[id] = node.op == Op::Operand && node.payload == static_cast<std::int64_t>(operand);
      if (is_row_reduction(node.op)) continue;  // the same in every column: rotating it reads nothing elsewhere
      for (NodeId arg : node) holds[id] = holds[id] || holds[arg];
      if (used[id] && node.op == Op::Rotate && holds[id]) return true;
    }
    return false;
  }

  Status place_results() {
    for (const auto& [result, operand] : options_.in_place) {
      std::string what = "in place, '" + result + "' over '" + operand + "': ";
      std::optional<std::size_t> r = plan_.find(result), o = plan_.find(operand);
      if (!r || !o) return plan_.unknown(r ? operand : result);
      PlanArray &to = plan_.arrays[*r], &from = plan_.arrays[*o];
      if (!to.result || from.result)
        return plan_.wrong(Code::InvalidArgument, what + "a stored result takes the memory of an operand");
      auto same = [](const AxisIndexing& a, const AxisIndexing& b) {
        return a.present == b.present && a.plain() && b.plain();
      };
      if (!same(to.indexing.row, from.indexing.row) || !same(to.indexing.column, from.indexing.column) ||
          !to.indexing.row.present)
        return plan_.wrong(Code::Unsupported, what + "both must be [i,j], or both [i]");
      if (is_packed(to.type) && is_packed(from.type))
        return plan_.wrong(Code::Unsupported, what + "results of f4e2m1 have memory of their own");
      if (bits(to.type) != bits(from.type))
        return plan_.wrong(Code::InvalidArgument, what + "elements of " + std::string(name(to.type)) + " and " +
                                                      std::string(name(from.type)) + " differ in size");
      if (is_rotated(from.number))
        return plan_.wrong(Code::Unsupported, what + "the program reads '" + operand + "' rotated");
      to.in_place = *o;
    }
    return Done{};
  }

  Status take_strides() {
    for (const auto& [name, strides] : options_.strides) {
      std::optional<std::size_t> k = plan_.find(name);
      if (!k) return plan_.unknown(name);
      PlanArray& array = plan_.arrays[*k];
      View view{.type = array.type, .shape = array.shape(), .strides = strides};
      if (strides.size() != view.shape.size())
        return plan_.wrong(Code::InvalidArgument, name + ": the strides " + print_strides(strides) +
                                                      " are not those of the shape " + print(view.shape));
      TRIREME_TRY(flat, flattened(plan_, array, view));
      if (!checked_byte_range({flat, array.rows, array.columns}))
        return plan_.wrong(Code::InvalidArgument,
                           name + ": the strides " + print_strides(strides) + " reach beyond 2^61 bytes");
      array.strides = strides;
      array.layout = layout_of(flat, array.columns);
    }
    return Done{};
  }

  Status choose_threads() {
    TRIREME_TRY(threads, threads_asked(options_.threads));
    plan_.options.threads = threads;
    plan_.options.parallel_for = options_.parallel_for;
    return Done{};
  }

  // As arrays lie that have the plan's strides and begin at multiples of 16 bytes.
  void fill_alignment_facts(Facts& facts) const {
    std::vector<Array> arrays(plan_.program.array_count());
    for (const PlanArray& array : plan_.arrays) {
      View view{.type = array.type};
      if (Result<Array> flat = flattened(plan_, array, view)) arrays[array.number] = *flat;
    }
    const Problem2d problem{
        .rows = plan_.rows, .columns = plan_.columns, .constants = plan_.constants, .arrays = arrays};
    trireme::fill_alignment_facts(plan_.program, problem, facts);
  }

  Status compile() {
    Facts facts{.rows = plan_.rows, .columns = plan_.columns};
    facts.layout.arrays.resize(plan_.program.array_count());
    facts.layout.over_operands.resize(plan_.program.results.size());
    for (const PlanArray& array : plan_.arrays) {
      facts.layout.arrays[array.number] = array.layout;
      if (array.in_place != PlanArray::none)
        facts.in_place = facts.layout.over_operands[array.number - plan_.program.operands.size()] = true;
    }
    fill_alignment_facts(facts);
    if (!options_.config.empty()) {
      TRIREME_TRY(config, parse_config(options_.config));
      facts.config = config;
    } else {
      facts.config = remembered_config(plan_.device.entry(), plan_.program, facts);
    }
    Result<std::unique_ptr<Executable>> made = plan_.device.entry().compile(plan_.program, facts);
    if (!made && facts.config && options_.config.empty()) {  // tuned for something that no longer holds
      facts.config.reset();
      made = plan_.device.entry().compile(plan_.program, facts);
    }
    TRIREME_TRY(executable, std::move(made));
    plan_.direct = executable->direct();
    if (!plan_.direct)
      return Error{Code::Unsupported, "plans do not run this program on " + plan_.device.name() +
                                          "; cpu and reference do, and 'trireme verify' runs it there"};
    plan_.executable = std::move(executable);
    plan_.memory = plan_.direct->memory_bytes(plan_.rows, plan_.columns, plan_.options);
    // Now, so that no run has to allocate them.
    if (!plan_.options.parallel_for) start_threads(plan_.direct->workers(plan_.rows, plan_.columns, plan_.options));
    return Done{};
  }

  RowProgram program_;
  Program bound_;  // its arrays as a caller sees them
  const PlanOptions& options_;
  PlanState plan_;
};

}  // namespace

std::optional<std::size_t> PlanState::find(std::string_view name) const {
  for (std::size_t k = 0; k < arrays.size(); ++k)
    if (arrays[k].name == name) return k;
  return std::nullopt;
}

Error PlanState::unknown(std::string_view name) const {
  Suggestion suggestion(name);
  std::string listed;
  for (const PlanArray& array : arrays) {
    suggestion.consider(array.name);
    listed += (listed.empty() ? "" : ", ") + array.name;
  }
  return wrong(Code::InvalidArgument,
               "the plan has no array '" + std::string(name) + "'" + suggestion.text() + "; it has " + listed);
}

Result<Plan> Plan::create(const Device& device, const PlanOptions& options) {
  return or_out_of_memory([&]() -> Result<Plan> {
    TRIREME_CHECK(check_settings());
    TRIREME_TRY(state, Creator(device, options).create());
    return Plan(std::move(state));
  });
}

}  // namespace trireme
