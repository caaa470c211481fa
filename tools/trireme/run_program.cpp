#include "run_program.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <set>

#include "command_line.hpp"
#include "device_choice.hpp"
#include "files.hpp"
#include "language/diagnostic.hpp"
#include "npy_file.hpp"
#include "plan/resolve.hpp"
#include "plan/threads.hpp"
#include "program_options.hpp"
#include "sources.hpp"
#include "support/type_names.hpp"
#include "trireme/device.hpp"

namespace trireme::cli {
namespace {

using Files = std::map<std::string, std::string>;  // by the names of operands or results

Error wrong(const std::string& message) { return {Code::InvalidArgument, message}; }

// An error that lists what there is, if `name` is none of them.
template <typename Names>
Status check_known(const char* option, const std::string& name, const Names& names, const Program& program) {
  Suggestion suggestion(name);
  std::string listed;
  for (const std::string& each : names) {
    if (each == name) return Done{};
    suggestion.consider(each);
    listed += (listed.empty() ? "" : ", ") + each;
  }
  return wrong(
      fmt::format("{}: {} has no '{}'{}; there are: {}", option, program.name, name, suggestion.text(), listed));
}

std::vector<std::string> operands_in_memory(const Program& program) {
  std::vector<std::string> names;
  for (const Operand& each : program.operands)
    if (!each.constant) names.push_back(each.name);
  return names;
}

std::vector<std::string> results_of(const Program& program) {
  std::vector<std::string> names;
  for (const Output& each : program.results) names.push_back(each.name);
  return names;
}

bool is_element(const Spread& spread) { return spread.row.present && spread.column.present && spread.plain(); }

// What the arrays and options say, as a problem; files that are read are left open in `inputs`.
class Reading {
 public:
  Reading(const RunProgramOptions& options, const Program& program, std::set<std::string> absent)
      : options_(options), program_(program) {
    problem_.absent = std::move(absent);
  }
  std::map<std::string, NpyFile> inputs;
  Files outputs;

  Result<Problem> run() {
    problem_.program = options_.program;
    problem_.backward = options_.backward;
    problem_.gradients = names_listed(options_.gradients).value_or(std::set<std::string>{});
    problem_.axes = options_.axes;
    TRIREME_CHECK(open_inputs());
    TRIREME_CHECK(take_types());
    TRIREME_CHECK(take_shape());
    TRIREME_CHECK(take_results());
    TRIREME_CHECK(take_constants());
    return problem_;
  }

 private:
  Status open_inputs() {
    TRIREME_TRY(files, values_by_name("--in", options_.inputs, "NAME=FILE, as in x=x.npy"));
    for (const auto& [name, path] : files) {
      TRIREME_CHECK(check_known("--in", name, operands_in_memory(program_), program_));
      TRIREME_TRY(file, NpyFile::open(path));
      inputs.emplace(name, std::move(file));
    }
    for (const Operand& each : program_.operands) {
      if (each.constant || inputs.contains(each.name)) continue;
      if (each.fallback == no_node)
        return wrong(
            fmt::format("{} needs the operand '{}'; give --in {}=FILE.npy", program_.name, each.name, each.name));
      problem_.absent.insert(each.name);
    }
    return Done{};
  }

  Status take_types() {
    TRIREME_TRY(given, values_by_name("--type", options_.types, "NAME=TYPE, as in x=bf16"));
    std::vector<std::string> names = operands_in_memory(program_);
    for (const std::string& each : results_of(program_)) names.push_back(each);
    for (const auto& [name, text] : given) {
      TRIREME_CHECK(check_known("--type", name, names, program_));
      std::optional<Type> type = type_named(text);
      if (!type) return wrong(fmt::format("--type {}: '{}' is none of {}", name, text, type_names(", ", ", ")));
      problem_.types[name] = *type;
    }
    for (const auto& [name, file] : inputs) {
      auto said = problem_.types.find(name);
      Status fits = Done{};
      if (said != problem_.types.end()) {
        fits = check_holds(file.header().type, said->second);
      } else {
        Result<Type> type = storage_type_of(file.header().type);
        if (type) problem_.types[name] = *type;
        else fits = type.error();
      }
      if (!fits) return wrong(file.path() + ": " + fits.error().message);
    }
    return Done{};
  }

  const Operand* first_given(bool (*serves)(const Spread&)) const {
    for (const Operand& each : program_.operands)
      if (!each.constant && inputs.contains(each.name) && serves(each.spread)) return &each;
    return nullptr;
  }

  // The first element operand that is given has the problem's shape. Without one its outer axes are those of an operand
  // with a value a row, and its normalised ones those of an operand with one for each of a row's columns: a table.
  // Element results have the type of who says the columns. Tables have as many rows as their arrays.
  Status take_shape() {
    auto whole_rows = [](const Spread& spread) { return spread.row.present && spread.row.plain(); };
    auto whole_columns = [](const Spread& spread) { return spread.column.present && spread.column.plain(); };
    const Operand* element = first_given([](const Spread& spread) { return is_element(spread) && spread.plain(); });
    const Operand* columns = element ? element : first_given(whole_columns);
    const Operand* rows = element ? element : first_given(whole_rows);
    if (!rows || !columns)
      return wrong(
          "no [i,j] operand is given, whose shape would be the problem's, nor an [i] operand and a table or a "
          "[j] operand, which would say it together");
    const NpyFile& file = inputs.at(columns->name);
    const std::vector<std::int64_t>& shape = file.header().shape;
    if (static_cast<int>(shape.size()) < options_.axes || shape.empty())
      return wrong(fmt::format("{}: '{}' has the shape {}, and the last {} {} of it would make a row", file.path(),
                               columns->name, shape_text(shape), options_.axes, options_.axes == 1 ? "axis" : "axes"));
    if (element) {
      problem_.shape = shape;
    } else {
      problem_.shape = inputs.at(rows->name).header().shape;
      problem_.shape.insert(problem_.shape.end(), shape.end() - options_.axes, shape.end());
    }
    element_type_ = problem_.types.at(columns->name);
    if (is_packed(element_type_)) problem_.shape.back() *= 2;
    if (problem_.columns() == 0)
      return wrong(fmt::format("{}: '{}' has the shape {}: rows without columns", file.path(), columns->name,
                               shape_text(shape)));
    for (const Operand& each : program_.operands)
      if (auto table = inputs.find(each.name); table != inputs.end() && each.spread.row.picked())
        if (const auto& extents = table->second.header().shape; !extents.empty())
          problem_.placements[each.name].rows = extents[0];
    return Done{};
  }

  Status take_results() {
    TRIREME_TRY(files, values_by_name("--out", options_.outputs, "NAME=FILE, as in y=y.npy"));
    TRIREME_CHECK(check_distinct(files));
    outputs = std::move(files);
    for (const auto& [name, path] : outputs) TRIREME_CHECK(check_known("--out", name, results_of(program_), program_));
    if (outputs.empty()) return wrong("nothing would be stored; give --out NAME=FILE.npy");
    Type compute = Type::F32;
    for (const auto& [name, type] : problem_.types)
      if (type == Type::F64) compute = Type::F64;
    for (const Output& each : program_.results) {
      if (!outputs.contains(each.name)) problem_.absent.insert(each.name);
      else if (!problem_.types.contains(each.name))
        problem_.types[each.name] = is_element(each.spread) ? element_type_ : compute;
    }
    return Done{};
  }

  Status take_constants() {
    TRIREME_TRY(given, values_by_name("--set", options_.constants, "NAME=NUMBER, as in eps=1e-5"));
    std::vector<std::string> names;
    for (const Operand& each : program_.operands)
      if (each.constant) names.push_back(each.name);
    for (const auto& [name, text] : given) {
      TRIREME_CHECK(check_known("--set", name, names, program_));
      // As a problem line reads it, so that both agree on what a number is.
      Result<Problem> line = parse_problem(fmt::format("p 1x1 {}={}", name, text));
      if (!line || !line->constants.contains(name))
        return wrong(fmt::format("--set {}: '{}' is not a number", name, text));
      problem_.constants[name] = line->constants.at(name);
    }
    return Done{};
  }

  const RunProgramOptions& options_;
  const Program& program_;
  Problem problem_;
  Type element_type_ = Type::F32;
};

// [i,j] has the problem's shape, [i] the outer axes, [j] the normalised ones; a divided or wrapped index is one axis.
// f4e2m1 travels as bytes: half as many in the last axis.
std::vector<std::int64_t> expected_shape(const Problem& problem, const Spread& spread, const Buffer& buffer) {
  std::vector<std::int64_t> shape;
  auto split = problem.shape.end() - problem.axes;
  if (spread.row.present && spread.row.plain()) shape.assign(problem.shape.begin(), split);
  else if (spread.row.present) shape.push_back(buffer.row_extent);
  if (spread.column.present && spread.column.plain()) shape.insert(shape.end(), split, problem.shape.end());
  else if (spread.column.present) shape.push_back(buffer.column_extent);
  if (is_packed(buffer.array.type)) shape.back() /= 2;  // bytes
  return shape;
}

std::vector<std::int64_t> without_ones(std::vector<std::int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

Status read_inputs(const std::map<std::string, NpyFile>& inputs, const Problem& problem, Prepared& prepared) {
  for (std::size_t k = 0; k < prepared.bound.operands.size(); ++k) {
    const Operand& operand = prepared.bound.operands[k];
    auto file = inputs.find(operand.name);
    if (operand.constant || file == inputs.end()) continue;
    Buffer& buffer = prepared.buffers.operands[k];
    std::vector<std::int64_t> wanted = expected_shape(problem, operand.spread, buffer);
    const std::vector<std::int64_t>& got = file->second.header().shape;
    if (without_ones(got) != without_ones(wanted))
      return wrong(fmt::format("{}: '{}' has the shape {}, and {} is expected", file->second.path(), operand.name,
                               shape_text(got), shape_text(wanted)));
    TRIREME_CHECK(file->second.read(buffer.memory));
  }
  return Done{};
}

// All of them or none, but for renames that fail.
Status write_outputs(const Files& outputs, const Problem& problem, const Prepared& prepared) {
  std::vector<NewFile> written;
  std::string lines;
  for (std::size_t k = 0; k < prepared.bound.results.size(); ++k) {
    const Output& result = prepared.bound.results[k];
    const Buffer& buffer = prepared.buffers.results[k];
    std::vector<std::int64_t> shape = expected_shape(problem, result.spread, buffer);
    const std::string& path = outputs.at(result.name);
    TRIREME_TRY(file, write_npy(path, npy_type_for(*result.type), shape, buffer.memory));
    written.push_back(std::move(file));
    lines += fmt::format("{}: {} {}\n", path, name(*result.type), shape_text(shape));
  }
  for (NewFile& file : written) TRIREME_CHECK(file.commit());
  fmt::print("{}", lines);
  return Done{};
}

// The program to run, and the operands without which it is the backward that it is. An operand whose default is an
// expression and that is not given is absent: the gradient flows on into what the default reads, and the backward is
// another one.
Result<Program> program_for(const RunProgramOptions& options, std::set<std::string>& absent) {
  TRIREME_TRY(forward, load_program(options.program));
  if (!options.backward) return forward;
  for (const std::string& name : options.absent)
    TRIREME_CHECK(check_known("--absent", name, operands_in_memory(forward), forward));
  DifferentiateOptions how{.gradients = names_listed(options.gradients)};
  const std::set<std::string> said(options.absent.begin(), options.absent.end());
  how.absent = options_for(forward, forward, said).absent;
  TRIREME_TRY(given, values_by_name("--in", options.inputs, "NAME=FILE, as in x=x.npy"));
  while (true) {
    TRIREME_TRY(backward, load_backward(options.program, how));
    std::set<std::string> missing = how.absent;
    for (const std::string& name : operands_in_memory(backward))
      if (forward.find_operand(name) && !given.contains(name)) missing.insert(name);
    absent = options_for(forward, backward, missing).absent;
    if (absent == how.absent) return backward;
    how.absent = absent;
  }
}

}  // namespace

Result<int> run_program(const RunProgramOptions& options) {
  TRIREME_TRY(device, Device::named(options.target));
  std::set<std::string> absent;
  TRIREME_TRY(program, program_for(options, absent));
  Reading reading(options, program, std::move(absent));
  TRIREME_TRY(problem, reading.run());
  TRIREME_TRY(prepared, load_empty_problem(problem));
  TRIREME_CHECK(read_inputs(reading.inputs, problem, prepared));
  for (std::size_t k = 0; k < prepared.bound.results.size(); ++k)  // rows that nobody picks keep their contents: here 0
    if (prepared.bound.results[k].spread.row.picked()) {
      auto& memory = prepared.before.emplace(k, prepared.buffers.results[k].memory).first->second;
      std::fill(memory.begin(), memory.end(), std::byte{0});
    }
  TRIREME_TRY(threads, threads_asked(options.threads));
  TRIREME_CHECK(run_once(device.entry(), prepared, {.threads = threads}));
  TRIREME_CHECK(write_outputs(reading.outputs, problem, prepared));
  return fine;
}

}  // namespace trireme::cli
