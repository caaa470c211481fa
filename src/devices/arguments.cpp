#include "devices/arguments.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "ir/contract.hpp"
#include "schedule/resolve_groups.hpp"
#include "schedule/sum_classes.hpp"
#include "support/contract_arithmetic.hpp"

namespace trireme {

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t whole(std::int64_t values) { return ceil_div(values, 64) * 64; }  // lines of a row
// From one partial row to the next: whole lines, and an odd number of 64 values. Columns are added up over many of
// these rows at once, which would stand in one set of a cache if the rows began at multiples of 4096 bytes (layer_norm
// 32x4096 backward, in cache, AVX2: 0.95 ns an element, so 0.71).
std::int64_t pitch(std::int64_t values) { return (ceil_div(values, 64) | 1) * 64; }

// The least multiple of both, or `most` where that is less.
std::int64_t multiple(std::int64_t a, std::int64_t b, std::int64_t most) {
  std::int64_t both = 0;
  return __builtin_mul_overflow(a / std::gcd(a, b), b, &both) ? most : std::min(both, most);
}

// Simd machines walk rows as they lie: rows from which on every entry begins a new block are multiples of this.
std::int64_t rows_between_cuts(const SumClass& sums, const SumBlocks& cut, std::int64_t rows) {
  const AxisIndexing& row = sums.where.row;
  const std::int64_t block = cut.row_block[0], most = std::max<std::int64_t>(rows, 1);
  if (!row.present) return std::min(block, most);
  if (row.wrap) {
    std::int64_t rounds = 1;  // of all entries
    for (int kind = 0; kind < 3; ++kind)
      if (cut.blocks[kind])
        rounds = multiple(rounds, cut.row_block[kind] / std::gcd(cut.row_block[kind], row.divide), most);
    std::int64_t all = 0;
    if (__builtin_mul_overflow(row.divide * rounds, row.wrap, &all)) return most;
    return std::min(all, most);
  }
  if (cut.entries <= 1) return std::min(cut.row_block[cut.rows.kind(0)], most);
  const bool last_fits = !cut.blocks[1] || block % cut.row_block[1] == 0 || cut.blocks[1] == 1;
  return row.divide % block == 0 && last_fits ? block : row.divide;
}

std::int64_t workspace_before(const Kernels& kernels, std::size_t sums, std::int64_t rows, std::int64_t columns) {
  std::int64_t values = 0;
  for (std::size_t c = 0; c < sums; ++c) values += sum_blocks(kernels.sums[c], rows, columns).values;
  return values * static_cast<std::int64_t>(bytes(kernels.rows.compute));
}

}  // namespace

SumBlocks sum_blocks(const SumClass& sums, std::int64_t rows, std::int64_t columns) {
  SumBlocks cut;
  const auto results = static_cast<std::int64_t>(sums.results.size());
  if (sums.over_everything()) {
    cut.stride = whole(rows);
    cut.values = results * cut.stride;
    return cut;
  }
  cut.rows = shares_of(sums.where.row, rows);
  cut.entries = sums.where.row.extent(rows);
  cut.wide = sums.where.column.extent(columns);
  if (!sums.where.row.present) cut.rows.boundary = 1, cut.rows.counts[0] = rows;  // also where there are none
  const bool some[] = {cut.rows.boundary > 0, cut.rows.boundary < cut.entries, cut.rows.boundary + 1 < cut.entries};
  for (std::size_t kind = 0; kind < 3; ++kind) {
    cut.row_block[kind] =
        sums.row_block ? sums.row_block : contract::row_block(cut.rows.counts[kind], cut.entries * cut.wide);
    cut.blocks[kind] = some[kind] ? ceil_div(cut.rows.counts[kind], cut.row_block[kind]) : 0;
    cut.most = std::max(cut.most, cut.blocks[kind]);
  }
  cut.stride = pitch(cut.wide);
  if (!sums.in_teams) cut.values = results * cut.entries * cut.most * cut.stride;
  return cut;
}

std::int64_t SumBlocks::number(SumNumber which, std::int64_t all_rows) const {
  switch (which) {
    case SumNumber::RowBlock: return row_block[0];
    case SumNumber::RowBlock1: return row_block[1];
    case SumNumber::RowBlock2: return row_block[2];
    case SumNumber::Blocks: return blocks[0];
    case SumNumber::Blocks1: return blocks[1];
    case SumNumber::Blocks2: return blocks[2];
    case SumNumber::LargestBlock: return largest();
    case SumNumber::MostBlocks: return std::max<std::int64_t>(most, 1);
    case SumNumber::AllBlocks: return entries * most;
    case SumNumber::Entries: return entries;
    case SumNumber::Boundary: return rows.boundary;
    case SumNumber::Rows: return all_rows;
  }
  return 0;
}

Blocks cut_rows(const Kernels& kernels, std::int64_t rows, std::int64_t columns) {
  return cut_rows(kernels, kernels.rows, rows, columns);
}

namespace {

Blocks cut(const Kernels& kernels, const Kernel& kernel, std::int64_t rows, std::int64_t columns) {
  Blocks blocks{.units = rows, .row_block = kernel.launch.rows};
  if (kernel.simd) {
    std::int64_t between = 0;
    for (const SumClass& each : kernels.sums)
      if (each.by_blocks()) {
        const std::int64_t own = rows_between_cuts(each, sum_blocks(each, rows, columns), rows);
        between = between ? multiple(between, own, std::max<std::int64_t>(rows, 1)) : own;
      }
    if (between) blocks.row_block = between;
  } else if (kernel.launch.sums >= 0) {
    const SumClass& sums = kernels.sums[kernel.launch.sums];
    const SumBlocks cut = sum_blocks(sums, rows, columns);
    blocks.row_block = sums.where.row.present ? 1 : cut.row_block[0];
    if (sums.where.row.present) blocks.units = sums.in_teams ? cut.entries : cut.entries * cut.most;
  }
  blocks.count = ceil_div(blocks.units, blocks.row_block);
  blocks.workspace_bytes = blocks.count * kernel.launch.terms * whole(columns);
  return blocks;
}

}  // namespace

Blocks cut_rows(const Kernels& kernels, const Kernel& kernel, std::int64_t rows, std::int64_t columns) {
  Blocks blocks = cut(kernels, kernel, rows, columns);
  // Kernels run one after the other: one place for the terms of all.
  std::int64_t terms = cut(kernels, kernels.rows, rows, columns).workspace_bytes;
  for (const Kernel& each : kernels.before) terms = std::max(terms, cut(kernels, each, rows, columns).workspace_bytes);
  blocks.workspace_bytes = workspace_before(kernels, kernels.sums.size(), rows, columns) +
                           terms * static_cast<std::int64_t>(bytes(kernels.rows.compute));
  return blocks;
}

Blocks cut_rows(const Kernels& kernels, std::int64_t rows, std::int64_t columns, std::int64_t row_block) {
  Blocks blocks{.units = rows, .row_block = row_block, .count = ceil_div(rows, row_block)};
  if (!kernels.sums.empty())
    blocks.workspace_bytes = static_cast<std::int64_t>(kernels.sums[0].results.size()) * blocks.count * pitch(columns) *
                             static_cast<std::int64_t>(bytes(kernels.rows.compute));
  return blocks;
}

std::int64_t entries_of(const Kernels& kernels, const Kernel& kernel, std::int64_t rows, std::int64_t columns) {
  std::int64_t count = 0;
  for (std::size_t c = 0; c < kernels.sums.size(); ++c) {
    if (!kernel.simd && static_cast<int>(c) != kernel.launch.sums) continue;
    const SumClass& sums = kernels.sums[c];
    const SumBlocks cut = sum_blocks(sums, rows, columns);
    const std::int64_t covered = kernel.launch.columns_covered;
    const bool filled = !kernel.simd && sums.where.row.present;
    if (sums.over_everything()) count += static_cast<std::int64_t>(sums.results.size());
    else count += cut.entries * (filled ? ceil_div(cut.wide, covered) * covered : cut.wide);
  }
  return count;
}

std::int64_t rows_of_a_call(const Blocks& blocks, std::int64_t wanted) {
  if (wanted <= 0) return std::max<std::int64_t>(blocks.units, 1);
  return ceil_div(wanted, blocks.row_block) * blocks.row_block;
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
  const bool per_column = kernels.sums.size() == 1 && !kernels.sums[0].where.row.present;
  const bool has_blocks = !kernels.sums.empty() && kernels.sums[0].by_blocks() && !per_column;
  SumBlocks cut;  // of the class that was asked for last
  int last = -1;
  auto sums = [&](int number) -> const SumBlocks& {
    if (std::exchange(last, number) != number) cut = sum_blocks(kernels.sums[number], problem.rows, problem.columns);
    return cut;
  };
  auto workspace = [&](int array) -> std::uint64_t {
    if (array == scratch_array) return memory.scratch;
    const std::size_t before = is_partials(array) ? class_of_partials(array) : kernels.sums.size();
    return memory.partials + integer(workspace_before(kernels, before, problem.rows, problem.columns));
  };
  auto value_of = [&](const Slot& slot) -> std::uint64_t {
    switch (slot.what) {
      case Slot::What::Pointer:
        return slot.array < 0 ? workspace(slot.array) : address(problem.arrays[slot.array].data);
      case Slot::What::Stride:
        return integer(slot.array < 0 ? sums(class_of_partials(slot.array)).stride
                                      : problem.arrays[slot.array].row_stride);
      case Slot::What::ColumnStride: return integer(problem.arrays[slot.array].column_stride);
      case Slot::What::Every: return integer(jump_of(problem.arrays[slot.array], slot.which).every);
      case Slot::What::Jump: return integer(jump_of(problem.arrays[slot.array], slot.which).elements);
      case Slot::What::Rows: return integer(problem.arrays[slot.array].table_rows);
      case Slot::What::Value: return constant(problem.constants[slot.array]);
      case Slot::What::Columns: return integer(problem.columns);
      case Slot::What::RowBlock: return integer(has_blocks ? sums(slot.array).row_block[0] : blocks.row_block);
      case Slot::What::Blocks: return integer(has_blocks ? sums(slot.array).blocks[0] : blocks.count);
      case Slot::What::SumNumber:
        return integer(sums(slot.array).number(static_cast<SumNumber>(slot.which), problem.rows));
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
  for (std::size_t k = 0; k < program.array_count(); ++k)
    if (const Program::Array what = program.array(k); what.in_memory) each(what.spread, problem.arrays[k]);
}

ArrayLayout layout_in(const Spread& spread, const Array& array, const Problem2d& problem) {
  // Wrapped columns may have more entries than there are columns.
  const std::int64_t entries = spread.column.plain() ? problem.columns : std::max<std::int64_t>(problem.columns, 2);
  ArrayLayout layout = layout_of(array, spread.column.present ? entries : 1);
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
  each_array(program, problem, [&](const Spread& spread, const Array& array) {
    if (!spread.column.present) return;
    const std::uint64_t size = bytes(array.type), aligned = row_alignment(spread, array, widest_access);
    if (aligned >= widest_access) return;
    // Entries of several columns are accessed together where that number divides a thread's columns: a power of two.
    const Result<AxisIndexing> axis = fixed_axis(program, spread.column, problem.columns);
    const std::uint64_t columns = axis ? static_cast<std::uint64_t>(axis->divide) : 1;
    if (!std::has_single_bit(columns)) return;
    alignment = std::min(alignment, std::max<std::uint64_t>(1, aligned / size) * columns);
  });
  return static_cast<std::int64_t>(alignment);
}

std::int64_t rows_together(const Program& program, const Problem2d& problem) {
  std::int64_t together = problem.rows;
  each_array(program, problem, [&](const Spread& spread, const Array& array) {
    if (!spread.row.present) return;
    if (array.row_stride != 1) together = 0;
    for (const Jump& jump : array.row_jumps) together = std::min(together, jump.every);
  });
  return together;
}

static bool lies_backwards(const Array& array) { return array.column_stride == -1 && array.column_jumps.size() == 0; }

std::optional<Layout> backwards_layout(const Layout& layout, const Program& program, const Problem2d& problem) {
  if (!layout.strided() || maps_columns(program)) return std::nullopt;
  Layout said = layout;
  for (std::size_t k = 0; k < said.arrays.size(); ++k) {
    ArrayLayout& each = said.arrays[k];
    const Spread& spread = program.array(k).spread;
    if (!each.strided || !spread.plain() || !spread.row.present || !lies_backwards(problem.arrays[k])) continue;
    each.strided = false;
    each.backwards = true;
  }
  return said.backwards() ? std::optional(std::move(said)) : std::nullopt;
}

bool lies_backwards(const Layout& layout, const Problem2d& problem) {
  for (std::size_t k = 0; k < layout.arrays.size(); ++k)
    if (layout.arrays[k].backwards && !lies_backwards(problem.arrays[k])) return false;
  return true;
}

void fill_alignment_facts(const Program& program, const Problem2d& problem, Facts& facts) {
  facts.alignment = aligned_elements(program, problem);
  facts.together = rows_together(program, problem);
  facts.backwards = backwards_layout(facts.layout, program, problem);
  for (std::size_t k = 0; k < program.array_count(); ++k) {
    const Program::Array what = program.array(k);
    const Spread& spread = what.spread;
    if (!what.in_memory || !spread.row.present || !spread.column.present || facts.layout.array(k).strided) continue;
    const Array& array = problem.arrays[k];
    if (what.result) {
      facts.result_alignment =
          std::min(facts.result_alignment, static_cast<std::int64_t>(row_alignment(spread, array, line_bytes)));
    } else {
      const std::int64_t gap = (array.row_stride - problem.columns) * static_cast<std::int64_t>(bytes(array.type));
      facts.rows_apart |= array.row_stride != 0 && (gap < 0 || gap > line_bytes);
    }
  }
}

Facts facts_of(const Program& program, const Problem2d& problem) {
  Facts facts{.rows = problem.rows, .columns = problem.columns};
  for (std::size_t r = 0; r < program.results.size(); ++r)
    for (std::size_t k = 0; k < program.operands.size(); ++k)
      facts.in_place |= !program.operands[k].constant && program.results[r].spread.row.present &&
                        program.results[r].spread.column.present &&
                        problem.arrays[program.array_of_result(r)].data == problem.arrays[k].data;
  for (std::size_t k = 0; k < program.array_count(); ++k) {
    const Program::Array what = program.array(k);
    facts.layout.arrays.push_back(what.in_memory ? layout_in(what.spread, problem.arrays[k], problem) : ArrayLayout{});
  }
  fill_alignment_facts(program, problem, facts);
  return facts;
}

Status check_layout(const Layout& compiled, const Program& program, const Problem2d& problem) {
  for (std::size_t k = 0; k < program.array_count(); ++k)
    if (const Program::Array what = program.array(k);
        what.in_memory && !compiled.array(k).covers(layout_in(what.spread, problem.arrays[k], problem)))
      return Error{Code::Unsupported, what.name + ": compiled for strides of another kind"};
  return Done{};
}

}  // namespace trireme
