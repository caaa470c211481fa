#include "plan/emission.hpp"

#include <fmt/format.h>

#include <limits>
#include <set>

#include "devices/arguments.hpp"
#include "ir/contract.hpp"
#include "language/print.hpp"
#include "plan/manifest.hpp"
#include "problem/resolve.hpp"
#include "schedule/lower.hpp"
#include "support/out_of_memory.hpp"

namespace trireme {
namespace {

// What a slot is called in a C header, and in words.
struct SlotText {
  std::string name, words;
};

SlotText describe_slot(const Slot& slot, const Program& program) {
  const auto of_class = [](std::string name, std::string words, int sums) -> SlotText {
    if (sums == 0) return {std::move(name), std::move(words)};
    return {fmt::format("{}_of_{}", name, sums), fmt::format("{}, of sums {}", words, sums)};
  };
  const std::string array = slot.what < Slot::What::Columns && slot.array >= 0
                                ? program.array(static_cast<std::size_t>(slot.array)).name
                                : "";
  const auto of_array = [&](std::string_view behind, std::string_view words) -> SlotText {
    return {fmt::format("{}{}", array, behind), fmt::format("{} {}", words, array)};
  };
  switch (slot.what) {
    case Slot::What::Pointer:
      if (slot.array == scratch_array) return {"scratch", "address of memory for this thread alone"};
      if (slot.array == terms_array) return {"terms", "address of the workspace's terms"};
      if (slot.array < 0) return of_class("workspace", "address of the workspace", class_of_partials(slot.array));
      return of_array("", "address of");
    case Slot::What::Stride:
      if (slot.array < 0)
        return of_class("workspace_stride", "workspace: values from one block's partial sums to the next's",
                        class_of_partials(slot.array));
      return of_array("_stride", "elements from row to row of");
    case Slot::What::ColumnStride: return of_array("_column_stride", "elements from column to column of");
    case Slot::What::Every: return of_array("_every", "rows between two jumps of");
    case Slot::What::Jump: return of_array("_jump", "elements more at a jump of");
    case Slot::What::Rows: return of_array("_rows", "rows of the table");
    case Slot::What::Value: return {array, fmt::format("{}, as {} in the low bytes", array, name(*program.compute))};
    case Slot::What::Columns:
      return {"n", has(program, Op::Rotate) ? "the number of columns; rotations are made for the one above"
                                            : "the number of columns"};
    case Slot::What::RowBlock: return of_class("row_block", "rows of a row block", slot.array);
    case Slot::What::Blocks: return of_class("row_blocks", "row blocks in all", slot.array);
    case Slot::What::SumNumber: {
      const std::string number(sum_number_names[slot.which]);
      return of_class(number, number + " of column sums", slot.array);
    }
  }
  return {};
}

struct Emitted {
  const Program& program;
  const Facts& facts;
  const Target& target;
  std::string_view arch;
  const Lowered& lowered;
  const Artifact& artifact;
};

std::string describe(const Emitted& emitted) {
  const auto& [program, facts, target, arch, lowered, artifact] = emitted;
  const Kernels& kernels = lowered.kernels;
  std::string text = signature_of(program) + "\n";
  text += fmt::format("{} columns, contract version {}, {}: {}\n", facts.columns, contract::version, arch,
                      print(lowered.config));
  text += target.entries(kernels, artifact);
  if (lowered.config.vector > 1) text += "arrays begin at multiples of 16 bytes, and so do their rows\n";
  for (std::size_t k = 0; k < kernels.rows.slots.size(); ++k)
    text += fmt::format("args[{}]: {}\n", k, describe_slot(kernels.rows.slots[k], program).words);
  if (std::int64_t scratch = scratch_bytes(kernels, facts.columns))
    text += fmt::format("scratch: {} bytes{}\n", scratch, kernels.rows.simd ? "" : " of dynamic shared memory a block");
  Blocks blocks = cut_rows(kernels, facts.rows, facts.columns);
  text += fmt::format("for {} rows: row blocks of {}, {} bytes of workspace\n", facts.rows, blocks.row_block,
                      blocks.workspace_bytes);
  return text;
}

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

std::string c_constants(const Emitted& emitted) {
  const auto& [program, facts, target, arch, lowered, artifact] = emitted;
  const Kernels& kernels = lowered.kernels;
  const std::string prefix = upper(program.name) + "_";
  std::string out = "/* " + describe(emitted) + " */\n";
  for (std::size_t at = 0; (at = out.find('\n', at + 1)) + 1 < out.size();) out.insert(at + 1, " * "), at += 3;
  auto constant = [&](const std::string& what, std::int64_t value) {
    bool small = value <= std::numeric_limits<int>::max();
    out += fmt::format("#define {}{} {}\n", prefix, what,
                       small ? fmt::to_string(value) : fmt::format("INT64_C({})", value));
  };
  std::set<std::string> taken;
  for (std::size_t k = 0; k < kernels.rows.slots.size(); ++k) {
    std::string slot = describe_slot(kernels.rows.slots[k], program).name;
    while (!taken.insert(slot).second) slot += '_';  // an operand may be called workspace
    constant("ARG_" + slot, static_cast<std::int64_t>(k));
  }
  constant("ARGS", static_cast<std::int64_t>(kernels.rows.slots.size()));
  constant("CONTRACT", contract::version);
  constant("COLUMNS", facts.columns);
  Blocks blocks = cut_rows(kernels, facts.rows, facts.columns);
  out += "/* For so many rows: */\n";
  constant("ROWS", facts.rows);
  constant("ROW_BLOCK", blocks.row_block);
  constant("ROW_BLOCKS", blocks.count);
  constant("WORKSPACE_BYTES", blocks.workspace_bytes);
  if (kernels.sums.empty()) constant("WORKSPACE_STRIDE", 0);
  for (std::size_t c = 0; c < kernels.sums.size(); ++c) {
    const SumBlocks cut = sum_blocks(kernels.sums[c], facts.rows, facts.columns);
    const std::string of = c == 0 ? "" : fmt::format("_OF_{}", c);
    constant("WORKSPACE_STRIDE" + of, cut.stride);
    if (kernels.sums[c].by_blocks() && !kernels.sums[c].where.row.present) continue;
    for (std::size_t k = 0; k < sum_number_names.size(); ++k)
      constant(upper(std::string(sum_number_names[k])) + of, cut.number(static_cast<SumNumber>(k), facts.rows));
  }
  out += "/* For any number: */\n";
  constant("SCRATCH_BYTES", scratch_bytes(kernels, facts.columns));
  if (!kernels.rows.simd) {
    constant("THREADS", kernels.rows.launch.threads());
    constant("ROW_BLOCKS_A_BLOCK", kernels.rows.launch.teams);
    constant("CLUSTER", kernels.rows.launch.cluster);
    if (!kernels.columns.empty()) {
      constant("COLUMN_THREADS", kernels.columns[0].launch.threads());
      constant("COLUMNS_A_BLOCK", kernels.columns[0].launch.columns_covered);
    }
  }
  if (artifact.columns_entry >= 0) constant("COLUMNS_ENTRY", artifact.columns_entry);
  return out;
}

}  // namespace

std::string signature_of(const Program& program) {
  std::string text = print(program);
  // The body's lines are set in by four, those of a long signature by more.
  std::size_t end = text.find('\n');
  while (end != text.npos && text.compare(end + 1, 5, "     ") == 0) end = text.find('\n', end + 1);
  return text.substr(0, end);
}

Result<Emission> emit(const Prepared& prepared, const Facts& facts, const Target& target, std::string arch) {
  if (arch.empty()) arch = target.default_arch;
  TRIREME_TRY(machine, target.machine(arch));
  TRIREME_TRY(lowered, lower_for(prepared.program, machine, facts));
  return emit(prepared, facts, target, arch, lowered);
}

Result<Emission> emit(const Prepared& prepared, const Facts& facts, const Target& target, const std::string& arch,
                      const Lowered& lowered) {
  TRIREME_TRY(manifest, manifest_of(prepared.program, lowered.kernels, lowered.config,
                                    {.columns = facts.columns,
                                     .constants = prepared.constants,
                                     .bound = &prepared.bound,
                                     .of_target = target.manifest(lowered.kernels, arch)}));
  TRIREME_TRY(artifact, target.emit(lowered.kernels, arch, manifest));
  if (artifact.columns_entry >= 0)
    manifest.insert(manifest.size() - 1, fmt::format(R"(,"columnsEntry":{})", artifact.columns_entry));
  const Emitted emitted{prepared.program, facts, target, arch, lowered, artifact};
  Emission emission{.program = prepared.program.name,
                    .target = std::string(target.name),
                    .arch = arch,
                    .config = print(lowered.config),
                    .description = describe(emitted),
                    .manifest = manifest,
                    .c_constants = c_constants(emitted)};
  emission.bytes = std::move(artifact.bytes);
  return emission;
}

std::string c_header(const Emission& emission) {
  const Result<const Target*> target = find_target(emission.target);
  const bool is_text = target && (*target)->form == Target::Form::Text;
  const bool is_code = target && (*target)->form == Target::Form::Code;
  const std::string& name = emission.program;
  const std::string guard = "TRIREME_" + upper(name) + "_H";
  std::string out = fmt::format("#ifndef {0}\n#define {0}\n#include <stdint.h>\n\n{1}\n", guard, emission.c_constants);
  if (is_code)
    out +=
        fmt::format("typedef void {}_entry(const uint64_t* args, int64_t first, int64_t last, int64_t total);\n", name);
  out += fmt::format("static const unsigned char {}_{}[] = {{", name, emission.target);
  for (std::size_t k = 0; k < emission.bytes.size(); ++k)
    out += fmt::format("{}{},", k % 24 ? "" : "\n", emission.bytes[k]);
  return out + (is_text ? "0" : "") + "\n};\n#endif\n";  // drivers take PTX as a string
}

std::vector<std::string> emit_targets() {
  std::vector<std::string> names;
  for (const Target* each : targets()) names.emplace_back(each->name);
  return names;
}

Result<Emission> emit(const EmitOptions& options) {
  return or_out_of_memory([&]() -> Result<Emission> {
    if (!options.program) return Error{Code::InvalidArgument, "emit: there is no program"};
    if (options.rows < 0 || options.columns < 1)
      return Error{Code::InvalidArgument, "emit: at least one column is needed, and no less than no rows"};
    TRIREME_TRY(target, find_target(options.target));
    const Program& forward = options.program.forward();
    Problem problem{.program = forward.name};
    problem.shape = {std::max<std::int64_t>(options.rows, 1), options.columns};
    problem.axes = 1;
    problem.backward = options.program.is_backward();
    if (problem.backward) problem.gradients = unusual_gradients(options.program);
    problem.types = options.types;
    problem.constants = options.constants;
    problem.absent = options.absent;
    TRIREME_TRY(prepared, prepare_problem(problem, print(forward), Fill::NoMemory));
    Facts facts = facts_of(prepared.program, prepared.view());
    if (!options.config.empty()) {
      TRIREME_TRY(config, parse_config(options.config));
      facts.config = config;
    }
    return emit(prepared, facts, *target, options.arch);
  });
}

}  // namespace trireme
