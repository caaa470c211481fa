#include "devices/arguments.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "ir/contract.hpp"
#include "support/mxcsr.hpp"

namespace trireme {

Blocks cut_rows(const Kernels& kernels, std::int64_t rows, std::int64_t columns) {
  bool sums = !kernels.column_results.empty();
  return cut_rows(kernels, rows, columns, sums ? contract::row_block(rows, columns) : kernels.rows.launch.rows);
}

Blocks cut_rows(const Kernels& kernels, std::int64_t rows, std::int64_t columns, std::int64_t row_block) {
  Blocks blocks;
  bool sums = !kernels.column_results.empty();
  blocks.row_block = row_block;
  blocks.count = (rows + blocks.row_block - 1) / blocks.row_block;
  if (!sums) return blocks;
  blocks.partial_stride = (columns + 63) / 64 * 64;
  blocks.workspace_bytes = static_cast<std::int64_t>(kernels.column_results.size()) * blocks.count *
                           blocks.partial_stride * static_cast<std::int64_t>(bytes(kernels.rows.compute));
  return blocks;
}

std::int64_t rows_of_a_call(const Blocks& blocks, std::int64_t rows, std::int64_t wanted) {
  if (wanted <= 0) return std::max<std::int64_t>(rows, 1);
  return (wanted + blocks.row_block - 1) / blocks.row_block * blocks.row_block;
}

std::vector<std::uint64_t> fill_slots(const Kernels& kernels, const Program& program, const Problem2d& problem,
                                      const Blocks& blocks, const Memory& memory) {
  std::vector<std::uint64_t> args(kernels.rows.slots.size());
  fill_slots(kernels, program, problem, blocks, memory, args.data());
  return args;
}

// Code made for more jumps than the array has meets one that never comes.
static Jump jump_of(const Array& array, int number) {
  bool of_columns = number >= first_column_jump;
  const Jumps& jumps = of_columns ? array.column_jumps : array.row_jumps;
  int k = of_columns ? number - first_column_jump : number;
  return k < jumps.size() ? jumps[k] : Jump{.every = std::numeric_limits<std::int64_t>::max(), .elements = 0};
}

void fill_slots(const Kernels& kernels, const Program& program, const Problem2d& problem, const Blocks& blocks,
                const Memory& memory, std::uint64_t* args) {
  ContractArithmetic rounds_constants;
  auto address = [](const void* data) { return reinterpret_cast<std::uint64_t>(data); };
  auto integer = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  auto constant = [&](double value) {
    return *program.compute == Type::F32 ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                                         : std::bit_cast<std::uint64_t>(value);
  };
  auto value_of = [&](const Slot& slot) -> std::uint64_t {
    switch (slot.kind) {
      case Slot::Kind::Columns: return integer(problem.columns);
      case Slot::Kind::OperandPointer: return address(problem.operands[slot.index].data);
      case Slot::Kind::OperandStride: return integer(problem.operands[slot.index].row_stride);
      case Slot::Kind::OperandColumnStride: return integer(problem.operands[slot.index].column_stride);
      case Slot::Kind::OperandEvery: return integer(jump_of(problem.operands[slot.index], slot.jump).every);
      case Slot::Kind::OperandJump: return integer(jump_of(problem.operands[slot.index], slot.jump).elements);
      case Slot::Kind::ResultEvery: return integer(jump_of(problem.results[slot.index], slot.jump).every);
      case Slot::Kind::ResultJump: return integer(jump_of(problem.results[slot.index], slot.jump).elements);
      case Slot::Kind::ResultPointer: return address(problem.results[slot.index].data);
      case Slot::Kind::ResultStride: return integer(problem.results[slot.index].row_stride);
      case Slot::Kind::ResultColumnStride: return integer(problem.results[slot.index].column_stride);
      case Slot::Kind::Constant: return constant(problem.constants[slot.index]);
      case Slot::Kind::RowBlock: return integer(blocks.row_block);
      case Slot::Kind::Blocks: return integer(blocks.count);
      case Slot::Kind::Partials: return memory.partials;
      case Slot::Kind::PartialStride: return integer(blocks.partial_stride);
      case Slot::Kind::Scratch: return memory.scratch;
      case Slot::Kind::Number: return 0;  // of kernels that are filled by others
    }
    return 0;
  };
  for (const Slot& slot : kernels.rows.slots) *args++ = value_of(slot);
}

std::int64_t scratch_bytes(const Kernels& kernels, std::int64_t columns) {
  std::int64_t most = 0;
  auto of = [&](const Kernel& kernel) {
    return kernel.scratch_bytes + kernel.scratch_bytes_per_stripe * contract::stripes(columns);
  };
  most = of(kernels.rows);
  for (const Kernel& kernel : kernels.columns) most = std::max(most, of(kernel));
  return most;
}

namespace {

template <typename Each>
void each_array(const Program& program, const Problem2d& problem, Each&& each) {
  for (std::size_t k = 0; k < program.operands.size(); ++k)
    if (!program.operands[k].constant) each(program.operands[k].name, program.operands[k].spread, problem.operands[k]);
  for (std::size_t k = 0; k < program.results.size(); ++k)
    each(program.results[k].name, program.results[k].spread, problem.results[k]);
}

ArrayLayout layout_in(const Spread& spread, const Array& array, const Problem2d& problem) {
  ArrayLayout layout = layout_of(array, spread.column.present ? problem.columns : 1);
  if (!spread.row.present || problem.rows <= 1) layout.row_jumps = 0;
  return layout;
}

// Bytes, at most `most`, that all rows begin at multiples of.
std::uint64_t row_alignment(const Spread& spread, const Array& array, std::uint64_t most) {
  std::uint64_t places = reinterpret_cast<std::uint64_t>(array.data) | most, size = bytes(array.type);
  if (spread.row.present) places |= static_cast<std::uint64_t>(array.row_stride) * size;
  for (const Jump& jump : array.row_jumps) places |= static_cast<std::uint64_t>(jump.elements) * size;
  return std::uint64_t{1} << std::countr_zero(places);
}

}  // namespace

std::int64_t aligned_elements(const Program& program, const Problem2d& problem) {
  constexpr std::uint64_t widest_access = 16;  // bytes
  std::uint64_t alignment = std::uint64_t{1} << std::countr_zero(static_cast<std::uint64_t>(problem.columns) | 16);
  each_array(program, problem, [&](const std::string&, const Spread& spread, const Array& array) {
    if (!spread.column.present) return;
    const std::uint64_t size = bytes(array.type), aligned = row_alignment(spread, array, widest_access);
    if (aligned < widest_access) alignment = std::min(alignment, std::max<std::uint64_t>(1, aligned / size));
  });
  return static_cast<std::int64_t>(alignment);
}

std::int64_t rows_together(const Program& program, const Problem2d& problem) {
  std::int64_t together = problem.rows;
  each_array(program, problem, [&](const std::string&, const Spread& spread, const Array& array) {
    if (!spread.row.present) return;
    if (array.row_stride != 1) together = 0;
    for (const Jump& jump : array.row_jumps) together = std::min(together, jump.every);
  });
  return together;
}

static bool lies_backwards(const Array& array) { return array.column_stride == -1 && array.column_jumps.size() == 0; }

std::optional<Layout> backwards_layout(const Layout& layout, const Program& program, const Problem2d& problem) {
  if (!layout.strided() || goes_lane_by_lane(program, {})) return std::nullopt;
  Layout said = layout;
  auto look = [](ArrayLayout& each, const Spread& spread, const Array& array) {
    if (!each.strided || !spread.plain() || !spread.row.present || !lies_backwards(array)) return;
    each.strided = false;
    each.backwards = true;
  };
  for (std::size_t k = 0; k < said.operands.size(); ++k)
    look(said.operands[k], program.operands[k].spread, problem.operands[k]);
  for (std::size_t k = 0; k < said.results.size(); ++k)
    look(said.results[k], program.results[k].spread, problem.results[k]);
  return said.backwards() ? std::optional(std::move(said)) : std::nullopt;
}

bool lies_backwards(const Layout& layout, const Problem2d& problem) {
  auto all = [](const std::vector<ArrayLayout>& said, std::span<const Array> arrays) {
    for (std::size_t k = 0; k < said.size(); ++k)
      if (said[k].backwards && !lies_backwards(arrays[k])) return false;
    return true;
  };
  return all(layout.operands, problem.operands) && all(layout.results, problem.results);
}

void look_at_places(const Program& program, const Problem2d& problem, Facts& facts) {
  facts.alignment = aligned_elements(program, problem);
  facts.together = rows_together(program, problem);
  facts.backwards = backwards_layout(facts.layout, program, problem);
  auto in_rows = [](const Spread& spread, const ArrayLayout& layout) {
    return spread.row.present && spread.column.present && !layout.strided;
  };
  for (std::size_t k = 0; k < program.operands.size(); ++k)
    if (!program.operands[k].constant && in_rows(program.operands[k].spread, facts.layout.operand(k))) {
      const Array& array = problem.operands[k];
      const std::int64_t gap = (array.row_stride - problem.columns) * static_cast<std::int64_t>(bytes(array.type));
      facts.rows_apart |= array.row_stride != 0 && (gap < 0 || gap > line_bytes);
    }
  for (std::size_t r = 0; r < program.results.size(); ++r)
    if (in_rows(program.results[r].spread, facts.layout.result(r)))
      facts.result_alignment =
          std::min(facts.result_alignment,
                   static_cast<std::int64_t>(row_alignment(program.results[r].spread, problem.results[r], line_bytes)));
}

Facts facts_of(const Program& program, const Problem2d& problem) {
  Facts facts{.rows = problem.rows, .columns = problem.columns};
  for (std::size_t r = 0; r < program.results.size(); ++r)
    for (std::size_t k = 0; k < program.operands.size(); ++k)
      facts.in_place |= !program.operands[k].constant && program.results[r].spread.row.present &&
                        program.results[r].spread.column.present && problem.results[r].data == problem.operands[k].data;
  for (std::size_t k = 0; k < program.operands.size(); ++k)
    facts.layout.operands.push_back(program.operands[k].constant
                                        ? ArrayLayout{}
                                        : layout_in(program.operands[k].spread, problem.operands[k], problem));
  for (std::size_t k = 0; k < program.results.size(); ++k)
    facts.layout.results.push_back(layout_in(program.results[k].spread, problem.results[k], problem));
  look_at_places(program, problem, facts);
  return facts;
}

Status check_layout(const Layout& compiled, const Program& program, const Problem2d& problem) {
  auto check = [&](const ArrayLayout& layout, const std::string& name, const Spread& spread,
                   const Array& array) -> Status {
    if (layout.covers(layout_in(spread, array, problem))) return Done{};
    return Error{Code::Unsupported, name + ": compiled for strides of another kind"};
  };
  for (std::size_t k = 0; k < program.operands.size(); ++k)
    if (!program.operands[k].constant)
      TRIREME_CHECK(
          check(compiled.operand(k), program.operands[k].name, program.operands[k].spread, problem.operands[k]));
  for (std::size_t k = 0; k < program.results.size(); ++k)
    TRIREME_CHECK(check(compiled.result(k), program.results[k].name, program.results[k].spread, problem.results[k]));
  return Done{};
}

}  // namespace trireme
