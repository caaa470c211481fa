#include "schedule/cost.hpp"

#include <cmath>
#include <limits>

#include "ir/contract.hpp"
#include "schedule/work.hpp"

namespace trireme {
namespace {

std::int64_t up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

struct Extents {                  // of a row
  std::int64_t chunks, elements;  // of a stripe; of a thread
  double warps;                   // that share it

  Extents(const Config& c)
      : chunks(chunks_of(c)),
        elements((c.stripes ? c.stripes : up(c.stripes_of_row(), c.groups)) * chunks * c.vector),
        warps(c.groups * c.cluster == 1 ? c.lanes / 32.0 : c.groups * c.cluster) {}
};

std::vector<AxisIndexing> odd_columns(const Program& program, std::int64_t columns) {
  std::vector<AxisIndexing> odd;
  const std::vector<bool> read = read_operands(program);
  for (std::size_t k = 0; k < program.operands.size(); ++k) {
    const Operand& operand = program.operands[k];
    if (operand.constant || !read[k] || !operand.spread.column.present || operand.spread.column.plain()) continue;
    if (const Result<AxisIndexing> axis = fixed_axis(program, operand.spread.column, columns)) odd.push_back(*axis);
  }
  return odd;
}

SweepReuse reuse_in(const Program& given, const Machine& machine, const Facts& facts) {
  std::optional<Program> made;
  const Program& program = with_row_sums(given, made);
  return reuse_of(program, split_into_stages(program, facts.layout.over_operands), machine.instructions);
}

std::int64_t block_rows(const EntrySums& entries, const Facts& facts) {
  if (entries.row_block) return entries.row_block;
  if (!entries.rows) return contract::row_block(facts.rows, facts.columns);
  return contract::row_block(entries.rows, up(facts.rows, entries.rows) * facts.columns);
}

}  // namespace

ThreadCost::ThreadCost(const Program& program, const Machine& machine, const Facts& facts, const ThreadFigures& figures)
    : program_(program),
      machine_(machine),
      facts_(facts),
      f_(figures),
      shape_(shape_of(program, facts.layout)),
      odd_columns_(odd_columns(program, facts.columns)),
      work_(instructions_a_vector(program, machine.instructions)),
      reuse_(reuse_in(program, machine, facts)),
      entry_sums_(entry_sums(program, facts.columns)),
      block_rows_(static_cast<double>(block_rows(entry_sums_, facts))) {}

double ThreadCost::registers(const Config& c) const {
  const double elements = static_cast<double>(c.stripes ? Extents(c).elements : c.vector);
  const double arrays = static_cast<double>(shape_.row_bytes) / static_cast<double>(shape_.widest);
  const double weights = static_cast<double>(shape_.column_bytes) / static_cast<double>(shape_.widest_column);
  double count = f_.registers + f_.arithmetic * std::sqrt(work_) + f_.loaded * c.vector * std::min(arrays + 1, 4.0);
  if (!c.reload && c.stripes)
    count += (shape_.reductions ? f_.kept * std::max<double>(arrays, reuse_.kept) : f_.passed * arrays) * elements;
  if (c.hoist) count += f_.hoisted * weights * elements;
  if (c.entries) count += entry_sums_.results * entry_sums_.levels * elements;
  return count + f_.summed * shape_.column_sums * elements;
}

double ThreadCost::most_registers(const Config& c) const {
  const Multiprocessor& of = machine_.multiprocessor;
  const double threads = c.lanes * c.groups * c.teams, file = of.registers;
  const double most = std::min<double>(of.registers_a_thread, file / std::max(threads, 128.0));
  return c.resident ? std::min(most, file / (threads * c.resident)) : most;
}

double ThreadCost::registers_had(const Config& c) const { return std::min(registers(c), most_registers(c)); }

// Instructions; bytes of the second cache, the groups of a block having rows i / m in common; and the latency of a
// stripe's loads, which other warps hide. Not fitted to tiles that were timed.
double ThreadCost::of_tiles(const Config& c) const {
  const Multiprocessor& of = machine_.multiprocessor;
  const auto [quotients, remainders] = tile_sides(c.tile);
  const double vector = c.vector, tile = c.tile, threads = c.lanes * c.groups;
  const double rows = static_cast<double>(std::max<std::int64_t>(facts_.rows, 1)), block_rows = c.rows;
  // ptxas, of matmul: 118 with tile=16 vector=4, 102 with vector=2, 80 with tile=8 vector=4, 197 with tile=32 vector=4.
  const double registers = 32 + (2.5 + 0.75 * vector * shape_.row_sums) * tile;
  if (registers > of.registers_a_thread) return std::numeric_limits<double>::infinity();
  const double blocks = std::ceil(rows / block_rows), processors = std::min<double>(machine_.processors, blocks);
  const double resident = std::max(1.0, std::min<double>(of.threads, std::floor(of.registers / registers)) / threads);
  const double chunks = std::ceil(static_cast<double>(contract::stripe) / (c.lanes * vector));
  const double across = tile * vector * shape_.row_sums * 4;
  const double stripe = chunks * (tile * vector * work_ / 3 + 4 * (quotients + remainders)) + across + 20;
  // Tiles of a block that is a part of one row i / m have one such row.
  const double m = static_cast<double>(*tiled_by(program_, facts_.layout, facts_.columns));
  const double filled = std::min(quotients, static_cast<int>(std::ceil(std::min(rows, block_rows) / m)));
  const double across_m = m / std::ceil(m / remainders);  // rows i % m of a tile, on average
  const double tiles = rows / (filled * across_m), stripes = static_cast<double>(c.stripes_of_row());
  const double issue = tiles * stripes * stripe / (of.schedulers * f_.issued * of.clock * processors);
  const double row_bytes = static_cast<double>(shape_.row_bytes + shape_.column_bytes) / 2;
  const double cache =
      tiles * static_cast<double>(c.columns) * row_bytes * (filled / c.groups + remainders) / f_.cache_bandwidth;
  const double rounds = std::ceil(blocks / (processors * std::floor(resident)));
  const double of_a_warp = std::ceil(std::min(rows, block_rows) / (filled * across_m * c.groups)) * stripes;
  const double latency = rounds * of_a_warp * (f_.memory_latency * 1e-6 + stripe * f_.dependent / of.clock);
  return issue + std::max(cache, latency);
}

double ThreadCost::operator()(const Config& c) const {
  const Multiprocessor& of = machine_.multiprocessor;
  constexpr double never = std::numeric_limits<double>::infinity(), micro = 1e-6;
  if (c.tile) return of_tiles(c);
  const Extents row(c);
  const double columns = static_cast<double>(c.columns), elements = static_cast<double>(row.elements);
  const double threads = c.lanes * c.groups * c.teams, warps = std::ceil(threads / 32);
  const double read = static_cast<double>(shape_.row_bytes), stored = static_cast<double>(shape_.stored_bytes);
  const double widest = static_cast<double>(shape_.widest), arrays = read / widest;

  // Occupancy.
  const double missing = std::max(0.0, registers(c) - most_registers(c));
  const double had = std::ceil(registers_had(c) / 8) * 8;
  const auto shared = static_cast<double>(shape_.shared_bytes(c));
  const auto shared_bytes = static_cast<double>(machine_.shared_bytes);
  if (shared > shared_bytes) return never;
  double blocks = std::min({std::floor(of.threads / threads), std::floor(of.registers / (had * warps * 32)),
                            std::floor((shared_bytes + 1024) / (shared + 1024)), double(of.blocks)});
  blocks = std::max(blocks, 1.0);
  // Multiprocessors that have work: some are left over by clusters, or by rows that are few.
  const double rows = static_cast<double>(std::max<std::int64_t>(facts_.rows, 1));
  const double team_rows = c.entries            ? static_cast<double>(entry_sums_.rows)
                           : shape_.column_sums ? block_rows_
                                                : static_cast<double>(c.rows);
  const double teams = std::ceil(rows / team_rows);
  double processors = std::min<double>(machine_.processors, std::ceil(teams / c.teams) * c.cluster);
  if (c.cluster > 1 && shape_.reductions) {
    const double clusters = std::floor(of.cluster_span * blocks / c.cluster);
    if (clusters < 1) return never;
    processors *= clusters * c.cluster / (of.cluster_span * blocks);
  }

  // Bytes.
  const bool reads_again = !c.ring && shape_.reductions > 0 && (c.reload || !c.stripes);
  const double again = reads_again ? f_.found_again * (c.stripes ? 1 : shape_.reductions) : 0;
  // How often a row's weights are read: each time, or once a team.
  const double weighed = !shape_.column_bytes ? 0 : c.hoist || c.stage ? 1 / std::min(team_rows, rows) : 1;
  const double piece = std::min<double>(of.line_bytes, c.lanes * c.vector * widest);
  const double segments = 1 + f_.narrow_segments * (of.line_bytes / piece - 1) * (c.groups * c.cluster == 1);
  double bytes = read * (1 + again) + stored;
  // Partial sums of entries are written, and read by the kernel that adds them up. Sums over all rows have few.
  if (entry_sums_.rows && !c.entries)
    bytes += 2 * entry_sums_.results * static_cast<double>(shape_.value_bytes) / block_rows_;
  const double memory = rows * columns * bytes * segments / of.bandwidth;
  const double cache = weighed * rows * columns * static_cast<double>(shape_.column_bytes) / f_.cache_bandwidth;

  // Instructions.
  // Rotated by less than a thread's columns, an operand is loaded twice.
  const double loads = arrays + stored / widest + 2 * shape_.rotations * (c.reload ? 2 : 1);
  double element = f_.work * work_ + f_.access * loads / c.vector;
  // One access for a thread's columns; two, and a comparison and a choice for each element, where they may stand on two
  // entries; or one for each element.
  for (const AxisIndexing& each : odd_columns_)
    element += each.entries_of_block(c.vector) ? f_.access / c.vector
               : each.divide >= c.vector       ? 2 * f_.access / c.vector + 2 * f_.work
                                               : f_.odd;
  if (c.reload || !c.stripes) element += f_.again * arrays + f_.work * reuse_.again;
  element += f_.weights * weighed;
  if (c.entries) element += f_.finished * entry_sums_.results / block_rows_;
  const double stripes = static_cast<double>(c.stripes ? c.stripes : up(c.stripes_of_row(), c.groups));
  double warp = element * elements + f_.sweep * shape_.reductions + f_.spilled * missing +
                stripes * shape_.row_sums * f_.shuffle * 5 * c.vector;
  if (c.cluster > 1) warp += f_.exchange * shape_.reductions;
  const double issue = rows * row.warps * warp / (of.schedulers * f_.issued * of.clock * processors);

  // A row's latency.
  double meeting = f_.sum_latency;
  if (c.cluster > 1) meeting += f_.cluster_latency * (1 + f_.cluster_growth * c.cluster);
  const double own = warp * f_.dependent / of.clock + shape_.reductions * meeting * micro;
  double load = f_.memory_latency * micro;
  if (!c.stripes) load *= f_.loop_latency * stripes;
  if (reads_again && c.stripes) load *= 2;
  // A ring brings the next rows meanwhile, where it holds all that is read of them: only a team's first row is waited
  // for.
  const bool ahead = c.ring && shape_.ring_bytes == shape_.row_bytes;
  const double start = f_.start_latency * micro + (ahead ? load : 0), a_row = ahead ? own : own + load;
  const double rounds = std::ceil(teams / (processors * blocks * c.teams / c.cluster));
  const double latency = rounds * (start + std::min(team_rows, rows) * a_row);

  auto power = [&](double value) { return std::pow(value, f_.sharpness); };
  return std::pow(power(memory) + power(cache) + power(issue) + power(latency), 1 / f_.sharpness);
}

}  // namespace trireme
