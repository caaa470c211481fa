#include "run_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "command_line.hpp"
#include "device_choice.hpp"
#include "ed25519.hpp"
#include "files.hpp"
#include "language/diagnostic.hpp"
#include "npy_file.hpp"
#include "plan/threads.hpp"
#include "problem/problem_shape.hpp"
#include "problem/resolve.hpp"
#include "program_options.hpp"
#include "receipt/receipt.hpp"
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
    TRIREME_CHECK(take_constants());
    TRIREME_CHECK(take_shape());
    TRIREME_CHECK(take_results());
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

  // Element results have the type of who says the columns. Tables have as many rows as their arrays.
  Status take_shape() {
    std::map<std::string, Dims> shapes;  // in elements
    for (const auto& [name, file] : inputs) {
      Dims& shape = shapes[name] = Dims(file.header().shape);
      if (is_packed(problem_.types.at(name)) && !shape.empty()) shape[shape.size() - 1] *= 2;
    }
    auto shape_of = [&](std::size_t k) {
      const auto found = shapes.find(program_.array(k).name);
      return found == shapes.end() ? nullptr : &found->second;
    };
    if (const std::optional<std::size_t> columns = shape_sources(program_, shape_of).columns) {
      const std::string& name = program_.operands[*columns].name;
      const NpyFile& file = inputs.at(name);
      const std::vector<std::int64_t>& held = file.header().shape;
      if (static_cast<int>(held.size()) < options_.axes || held.empty())
        return wrong(fmt::format("{}: '{}' has the shape {}, and the last {} {} of it would make a row", file.path(),
                                 name, shape_text(held), options_.axes, options_.axes == 1 ? "axis" : "axes"));
      if (std::count(held.end() - options_.axes, held.end(), 0))
        return wrong(
            fmt::format("{}: '{}' has the shape {}: rows without columns", file.path(), name, shape_text(held)));
      element_type_ = problem_.types.at(name);
    }
    TRIREME_TRY(shape, problem_shape(program_, shape_of, last(options_.axes), problem_.constants));
    problem_.shape.assign(shape.begin(), shape.end());
    for (const Operand& each : program_.operands)
      if (auto table = inputs.find(each.name); table != inputs.end() && each.spread.row.picked())
        if (const auto& extents = table->second.header().shape; !extents.empty())
          problem_.placements[each.name].rows = extents[0];
    return Done{};
  }

  Status take_results() {
    TRIREME_TRY(files, values_by_name("--out", options_.outputs, "NAME=FILE, as in y=y.npy"));
    Files written = files;  // no result has an empty name
    if (!options_.receipt.empty()) written.emplace("--receipt", options_.receipt);
    TRIREME_CHECK(check_distinct(written));
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

// Of arrays in memory, row-major and without gaps.
Result<receipts::Receipt> receipt_of(const Prepared& ran, std::string_view text, receipts::Hash hash) {
  return receipts::make_receipt(ran, text, hash, [&](std::size_t k) -> Result<receipts::ReadRows> {
    const Buffer& buffer = ran.buffer(k);
    const std::int64_t row_bytes = buffer.column_extent * bits(buffer.array.type) / 8;
    return receipts::ReadRows([&buffer, row_bytes](std::int64_t first, std::span<std::byte> rows) -> Status {
      std::copy_n(buffer.memory.data() + first * row_bytes, rows.size(), rows.data());
      return Done{};
    });
  });
}

// Signed where that is asked for, in canonical form.
Result<std::string> receipt_text(const RunProgramOptions& options, const Prepared& ran) {
  TRIREME_TRY(text, load_text(options.program));
  TRIREME_TRY(hash, receipts::hash_named(!options.hash.empty()  ? options.hash
                                         : options.sign.empty() ? "xxh3-128"
                                                                : "sha256"));
  if (!options.sign.empty() && hash != receipts::Hash::Sha256)
    return wrong("--sign wants --hash sha256: XXH3 is no cryptographic hash");
  TRIREME_TRY(receipt, receipt_of(ran, text, hash));
  if (!options.sign.empty()) {
    TRIREME_TRY(signature, sign(options.sign, receipts::signed_form(receipt)));
    receipt.signature = signature;
  }
  return receipts::print(receipt);
}

// All of them or none, but for renames that fail. `receipt`: its text; empty: none.
Status write_outputs(const Files& outputs, const Problem& problem, const Prepared& prepared,
                     const std::string& receipt_path, const std::string& receipt) {
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
  if (!receipt.empty() && receipt_path != "-") {
    TRIREME_TRY(file, NewFile::write(receipt_path, std::as_bytes(std::span(receipt)), {}));
    written.push_back(std::move(file));
  }
  for (NewFile& file : written) TRIREME_CHECK(file.commit());
  if (receipt_path == "-") return write_file("-", std::as_bytes(std::span(receipt)), {});
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
  std::string receipt;
  if (!options.receipt.empty()) {
    TRIREME_TRY(text, receipt_text(options, prepared));
    receipt = std::move(text);
  }
  TRIREME_CHECK(write_outputs(reading.outputs, problem, prepared, options.receipt, receipt));
  return fine;
}

}  // namespace trireme::cli
