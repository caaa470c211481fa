#include "problem/resolve.hpp"

#include <algorithm>

#include "ir/contract.hpp"
#include "ir/signature_names.hpp"
#include "language/parse.hpp"
#include "problem/problem_shape.hpp"
#include "problem/samples.hpp"

namespace trireme {
namespace {

bool is_element(const Spread& spread) { return spread.row.present && spread.column.present && spread.plain(); }

template <typename Map>
std::optional<typename Map::mapped_type> look_up(const Map& map, const std::string& name) {
  auto it = map.find(name);
  return it == map.end() ? std::nullopt : std::optional(it->second);
}

// The types that a line gives or leaves to their defaults.
class Types {
 public:
  Types(const Problem& problem, const Program& forward) : problem_(problem), forward_(forward), names_(forward) {
    if (const std::optional<std::size_t> leading = leading_operand(forward))
      base_ = look_up(problem.types, forward.operands[*leading].name).value_or(Type::F32);
    if (base_ == Type::F64) compute_ = Type::F64;
    for (const auto& [name, type] : problem.types)
      if (type == Type::F64) compute_ = Type::F64;
  }

  // What the line says of an array that is not there, or in a backward of the result whose gradient is not.
  std::optional<Type> of_absent(const std::string& name) const {
    if (std::optional<Type> given = look_up(problem_.types, name)) return given;
    if (names_.operand(name) || !name.starts_with('d') || !names_.result(std::string_view(name).substr(1))) return {};
    return look_up(problem_.types, name.substr(1));
  }

  Type of_operand(const std::string& name) const {
    if (std::optional<Type> given = look_up(problem_.types, name)) return *given;
    if (std::optional<std::size_t> result = names_.result(name)) return of_result(forward_.results[*result]);
    if (std::optional<std::size_t> operand = names_.operand(name))
      return is_seed(*operand) ? Type::I64 : picks(*operand) ? Type::I32 : base_for(forward_.array(*operand));
    if (!name.starts_with('d')) return base_;
    std::optional<std::size_t> result = names_.result(std::string_view(name).substr(1));
    return result ? of_result(forward_.results[*result]) : base_;
  }

  Type of_result(const Output& result) const {
    return look_up(problem_.types, result.name).value_or(is_element(result.spread) ? base_ : compute_);
  }

 private:
  Type base_for(const Program::Array& array) const {
    return is_packed(base_) && !can_be_packed(array) ? compute_ : base_;
  }

  bool is_seed(std::size_t operand) const {
    for (NodeId id = 0; id < forward_.size(); ++id)
      if (forward_[id].op == Op::Random && forward_[forward_[id].args[0]].payload == static_cast<std::int64_t>(operand))
        return true;
    return false;
  }

  bool picks(std::size_t operand) const {
    auto picked_by = [&](const Spread& spread) {
      return spread.row.picked() && forward_[spread.row.pick].payload == static_cast<std::int64_t>(operand);
    };
    return std::any_of(forward_.operands.begin(), forward_.operands.end(),
                       [&](const Operand& each) { return picked_by(each.spread); }) ||
           std::any_of(forward_.results.begin(), forward_.results.end(),
                       [&](const Output& each) { return picked_by(each.spread); });
  }

  const Problem& problem_;
  const Program& forward_;
  SignatureNames names_;
  Type base_ = Type::F32, compute_ = Type::F32;
};

enum class Kind : std::uint8_t { Unknown, Constant, Operand, Result };

Kind kind_of(const Program& program, const std::string& name) {
  if (std::optional<std::size_t> k = program.find_operand(name))
    return program.operands[*k].constant ? Kind::Constant : Kind::Operand;
  return program.find_result(name) ? Kind::Result : Kind::Unknown;
}

std::string names_of(const Program& program) {
  std::string list;
  for (const Operand& operand : program.operands) list += (list.empty() ? "" : " ") + operand.name;
  for (const Output& result : program.results) list += " " + result.name;
  return list;
}

}  // namespace

std::set<std::string> unusual_gradients(const RowProgram& backward) {
  auto arriving = [](const RowProgram& each) { return *options_for(each.forward(), each.graph(), {}).gradients; };
  const std::set<std::string> these = arriving(backward);
  Result<RowProgram> usual = backward.source().differentiate();
  return usual && arriving(*usual) == these ? std::set<std::string>{} : these;
}

Result<Program> backward_of(const Problem& problem, const Program& forward) {
  DifferentiateOptions options;
  if (!problem.gradients.empty()) options.gradients = problem.gradients;
  for (const std::string& name : problem.absent)
    if (kind_of(forward, name) == Kind::Operand) options.absent.insert(name);
  return differentiate(forward, options);
}

namespace {

// The contract's own row block, the largest of all sums over rows that are stored.
Result<std::int64_t> least_row_block(const Program& program, const std::set<std::string>& wanted,
                                     const Problem& problem) {
  std::vector<double> constants;
  for (const Operand& operand : program.operands) {
    auto given = problem.constants.find(operand.name);
    std::optional<double> value;
    if (given != problem.constants.end()) value = given->second;
    else if (operand.fallback != no_node) value = as_number(program, operand.fallback);
    constants.push_back(value.value_or(0));
  }
  const std::int64_t rows = problem.rows(), columns = problem.columns();
  std::int64_t least = 1;
  for (const Output& result : program.results) {
    if (!wanted.contains(result.name) || !sums_over_rows(program, result)) continue;
    TRIREME_TRY(where, indexing(program, result.spread, columns, constants));
    if (!where.row.present && !where.column.present) continue;  // the sum of the rows' sums
    const std::int64_t divide = std::max<std::int64_t>(where.row.divide, 1);
    std::int64_t sharing = rows;
    if (where.row.wrap) sharing = (rows + divide * where.row.wrap - 1) / (divide * where.row.wrap) * divide;
    else if (where.row.present) sharing = std::min(rows, divide);
    least = std::max(least, contract::row_block(std::min(sharing, rows), where.entries(rows, columns)));
  }
  return least;
}

}  // namespace

Result<Binding> binding_of(const Problem& problem, const Program& forward, const Program& program) {
  Types types(problem, forward);
  Binding binding;
  auto wrong = [&](const std::string& what) {
    return Error{Code::InvalidArgument, what + "; problem line: " + print(problem)};
  };
  // The name's kind here; Unknown for a name that only the other direction has.
  auto known = [&](const std::string& name, bool constant) -> Result<Kind> {
    Kind here = kind_of(program, name), there = kind_of(forward, name);
    if (here == Kind::Unknown && there == Kind::Unknown)
      return wrong(program.name + " has no '" + name + "', only " + names_of(program));
    bool is_constant = (here == Kind::Unknown ? there : here) == Kind::Constant;
    if (is_constant && !constant) return wrong("'" + name + "' is a constant, and takes a number");
    if (!is_constant && constant) return wrong("'" + name + "' is in memory, and takes a type or none");
    return here;
  };
  for (const auto& [name, type] : problem.types) {
    TRIREME_CHECK(known(name, false));
    if (!exists(type)) return wrong("'" + name + "': " + std::to_string(static_cast<int>(type)) + " is no type");
  }
  for (const auto& [name, value] : problem.constants) {
    TRIREME_TRY(kind, known(name, true));
    if (kind == Kind::Constant) binding.constants[name] = value;
  }
  std::set<std::string> wanted;
  for (const Output& result : program.results)
    if (!problem.absent.contains(result.name)) wanted.insert(result.name);
  for (const std::string& name : problem.absent) {
    TRIREME_TRY(kind, known(name, false));
    if (kind == Kind::Operand) binding.absent.insert(name);
    if (const std::optional<Type> type = types.of_absent(name); type && kind != Kind::Unknown)
      binding.types_of_absent[name] = *type;
  }
  for (const std::string& name : problem.accumulate) {
    TRIREME_TRY(kind, known(name, false));
    if (kind == Kind::Operand) return wrong("'" + name + "' is an operand; results can be accumulated");
    if (kind == Kind::Result) binding.accumulate.insert(name);
  }
  binding.row_block = problem.row_block;
  // Machines make room for as many blocks as the contract makes, and no more.
  if (problem.row_block) {
    TRIREME_TRY(least, least_row_block(program, wanted, problem));
    if (problem.row_block < least)
      return wrong("row_block=" + std::to_string(problem.row_block) + " is less than the contract's, " +
                   std::to_string(least) + "; blocks of a larger problem have at least as many rows");
  }
  if (wanted.size() < program.results.size()) binding.wanted = wanted;
  if (problem.columns() > 0) binding.columns = problem.columns();
  for (const Operand& operand : program.operands)
    if (!operand.constant && !binding.absent.contains(operand.name))
      binding.types[operand.name] = types.of_operand(operand.name);
  for (const Output& result : program.results)
    if (wanted.contains(result.name)) binding.types[result.name] = types.of_result(result);
  return binding;
}

Result<ResolvedProblem> resolve(const Problem& problem, std::string_view program_text) {
  ResolvedProblem resolved;
  resolved.problem = problem;
  TRIREME_TRY(remarks, parse_remarks(program_text));
  resolved.remarks = std::move(remarks);
  TRIREME_TRY(forward, parse(program_text));
  resolved.program = forward;
  if (problem.backward) {
    TRIREME_TRY(backward, backward_of(problem, forward));
    resolved.program = std::move(backward);
  }
  TRIREME_TRY(binding, binding_of(problem, forward, resolved.program));
  TRIREME_TRY(prepared, prepare(resolved.program, binding));
  static_cast<PreparedProgram&>(resolved) = std::move(prepared);
  return resolved;
}

Result<Buffers> empty_buffers(const ResolvedProblem& resolved, Backing backing) {
  const Problem& problem = resolved.problem;
  return make_buffers(resolved.bound, Dims(problem.shape), problem.axes, problem.placements, backing);
}

std::optional<Table> table_picked_by(const Program& bound, const Buffers& buffers, std::size_t operand) {
  std::optional<Table> table;
  auto look = [&](const Spread& spread, const Buffer& buffer, bool result) {
    if (!spread.row.picked() || bound[spread.row.pick].payload != static_cast<std::int64_t>(operand)) return;
    if (!table) table = Table{buffer.row_extent};
    table->rows = std::min(table->rows, buffer.row_extent);
    table->written = table->written || result;
  };
  for (std::size_t k = 0; k < bound.operands.size(); ++k) look(bound.operands[k].spread, buffers.operands[k], false);
  for (std::size_t k = 0; k < bound.results.size(); ++k) look(bound.results[k].spread, buffers.results[k], true);
  return table;
}

Result<Buffers> sampled_buffers(const ResolvedProblem& resolved) {
  const Problem& problem = resolved.problem;
  TRIREME_TRY(buffers, empty_buffers(resolved));
  for (std::size_t k = 0; k < buffers.operands.size(); ++k) {
    const Buffer& buffer = buffers.operands[k];
    const std::string& name = resolved.bound.operands[k].name;
    std::optional<RangeRemark> range = look_up(resolved.remarks.ranges, name);
    if (const std::optional<Table> table = table_picked_by(resolved.bound, buffers, k); table && !range) {
      fill_picks(buffer.array, buffer.row_extent, problem.seed, name, table->rows, table->written);
      continue;
    }
    fill_samples(buffer.array, buffer.row_extent, buffer.column_extent, problem.seed, name,
                 range ? range->at(problem.columns()) : default_range(buffer.array.type));
  }
  for (std::size_t k = 0; k < buffers.results.size(); ++k) {
    const Buffer& buffer = buffers.results[k];
    if (resolved.bound.results[k].accumulate)
      fill_samples(buffer.array, buffer.row_extent, buffer.column_extent, problem.seed, resolved.bound.results[k].name,
                   default_range(buffer.array.type));
  }
  return std::move(buffers);
}

}  // namespace trireme
