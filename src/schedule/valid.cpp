#include "schedule/valid.hpp"

#include <fmt/format.h>

#include <bit>

#include "ir/contract.hpp"
#include "ir/groups.hpp"
#include "ir/integers.hpp"
#include "schedule/across.hpp"
#include "schedule/options.hpp"
#include "schedule/shape.hpp"
#include "schedule/sum_classes.hpp"
#include "schedule/tiles.hpp"
#include "schedule/work.hpp"

namespace trireme {
namespace {

Error wrong(std::string message) { return {Code::InvalidArgument, "config: " + std::move(message)}; }

Error no_entries() { return wrong("entries: sums go to entries of rows i / d, and columns have entries of their own"); }

bool is_power(std::int64_t value, std::int64_t most) {
  return value >= 1 && value <= most && std::has_single_bit(static_cast<std::uint64_t>(value));
}

Status is_lowered(const Program& program) {
  auto refuse = [&](std::string what) { return Error{Code::Unsupported, program.name + ": " + what}; };
  for (const Output& result : program.results) {
    bool sum = is_column_reduction(program[result.value].op);
    if (!sum && needs_column_sum(result.spread))
      return refuse("results spread like " + result.name + " are not lowered yet");
  }
  std::vector<bool> used = reachable(program);
  for (NodeId id = 0; id < program.size(); ++id) {
    if (!used[id]) continue;
    if ((program[id].op >= Op::Mean && program[id].op != Op::Rotate) ||
        (program[id].op == Op::Group && group_of(program[id]).op == Op::Mean))
      return refuse(fmt::format("{} is not lowered yet", facts(program[id].op).name));
    if (program[id].op == Op::Rotate && as_number(program, program[id].args[1]).value_or(-1) < 0)
      return refuse("what rotates is bound with its number of columns, and this is not");
  }
  return Done{};
}

std::string names_of(unsigned kinds) {
  std::string names;
  for (std::size_t k = 0; k < std::size(kind_names); ++k)
    if (kinds >> k & 1) names += fmt::format("{}{}", names.empty() ? "" : ", ", kind_names[k]);
  return names;
}

// Each option that is said is one of this kind of schedule, and within its values.
Status are_options(const Config& config) {
  const ScheduleKind kind = kind_of(config);
  for (const Option& each : schedule_options) {
    if (!each.said(config)) continue;
    if (!(each.kinds & kind))
      return wrong(fmt::format("{} is for {}; this is {}", each.name, names_of(each.kinds), names_of(kind)));
    if (each.flag) continue;
    const int value = config.*each.number;
    if (each.power ? !is_power(value, each.most) || value < each.least : value < each.least || value > each.most)
      return wrong(fmt::format("{}={}; {}{} to {} goes", each.name, value, each.power ? "a power of two from " : "",
                               each.least, each.most));
  }
  if (!config.lanes) return wrong("lanes=N is needed");
  return Done{};
}

// Elements of a row, or vectors of them, whose code stands side by side.
std::int64_t unrolled(const Config& config) {
  const std::int64_t lanes = config.lanes, chunks = std::max<std::int64_t>(1, contract::stripe / lanes);
  switch (kind_of(config)) {
    case simd_loops: return std::min<std::int64_t>(config.unroll, chunks);
    case simd_stripes: return config.stripes * chunks_of(config) * config.rows;
    case simd_across: return std::int64_t{config.rows} * config.unroll;
    case simd_tiles: return config.tile * chunks_of(config);
    case thread_loops: return chunks_of(config) * config.vector;
    case thread_stripes: return config.stripes * chunks_of(config) * config.vector;
    case thread_tiles: return config.tile * chunks_of(config) * config.vector;
  }
  return 0;
}

// Code takes time to make: 2^16 instructions 10 ms on a CPU, and ptxas seconds. What candidates and tables hold has a
// fifth of it at most; so many elements as loops have are no choice.
Status is_short_code(const Config& config, std::int64_t instructions) {
  constexpr std::int64_t most = 1 << 16, of_loops = 16;
  const std::int64_t elements = unrolled(config);
  if (elements <= of_loops || elements * instructions <= most) return Done{};
  return wrong(fmt::format("{}: {} elements unrolled, of {} instructions each; {} are the most",
                           config.across    ? "rows and unroll"
                           : config.tile    ? "tile"
                           : config.stripes ? "stripes"
                           : config.simd    ? "unroll"
                                            : "lanes",
                           elements, instructions, most));
}

Status is_consistent_simd(const Config& config) {
  if (config.stripes && config.rows > 2) return wrong(fmt::format("rows={}; 1 or 2 goes with stripes", config.rows));
  if (config.across && config.rows > most_across_registers)
    return wrong(fmt::format("rows={}; 1 to {} goes with across", config.rows, most_across_registers));
  if (config.across && (config.unroll < 2 || config.unroll > 16))
    return wrong(fmt::format("unroll={}; 2, 4, 8 or 16 goes with across", config.unroll));
  if (config.compact && (config.unroll != 1 || config.streaming || config.prefetch || config.overlap))
    return wrong("compact: a sweep's code stands once, with unroll=1 and without streaming, prefetch and overlap");
  if (kind_of(config) == simd_loops && config.lanes == 1 && !config.compact)
    return wrong("lanes=1: loops are compact then");
  if (config.across && config.columns) return wrong("columns: any number of them goes with across");
  return Done{};
}

Status is_consistent_threads(const Config& config, bool reduces) {
  if (!config.columns) return wrong("columns=N is needed: thread machines fix it");
  if (config.lanes > 32) return wrong(fmt::format("lanes={}; a power of two up to 32 goes on threads", config.lanes));
  if (config.groups * config.teams * config.lanes > 1024)
    return wrong("lanes * groups * teams: a block has 1 to 1024 threads");
  if (config.teams > 1 && config.groups * config.cluster > 1)
    return wrong("teams share a block, not a row: groups and cluster are 1");
  // A chunk that reached into the next stripe would take its columns twice.
  if (std::int64_t{config.lanes} * config.vector > contract::stripe && config.columns > contract::stripe)
    return wrong(fmt::format("lanes * vector: {} lanes of {} elements are more than a stripe of {}", config.lanes,
                             config.vector, contract::stripe));
  if (config.group % config.vector)
    return wrong(fmt::format("vector={}: it cuts no group of {} columns", config.vector, config.group));
  if (config.stage && (!config.ring || config.teams > 1 || config.hoist))
    return wrong("stage needs a ring and one team a block, and excludes hoist");
  if (kind_of(config) == thread_loops && config.lanes == 1 && reduces && config.stripes_of_row() > 1)
    return wrong("lanes=1: the sums of a row's stripes meet across lanes, of which loops have 2 or more");
  if (!config.stripes) return Done{};
  if (std::int64_t{config.stripes} * config.groups * config.cluster < config.stripes_of_row())
    return wrong(fmt::format("stripes * groups * cluster * {} columns do not hold the row", config.stripe()));
  if (config.cluster > 1 && !is_power(config.groups, 32))
    return wrong(fmt::format("groups={}; a power of two up to 32 goes in a cluster", config.groups));
  if (config.cluster > config.lanes && reduces)
    return wrong("cluster is at most lanes: a group sends its sums to the blocks lane by lane");
  return Done{};
}

Status is_consistent(const Config& config, const Stages& stages, std::int64_t instructions) {
  TRIREME_CHECK(are_options(config));
  if (config.tile > config.lanes)
    return wrong(fmt::format("tile={}; up to {} go, the lanes", config.tile, config.lanes));
  if (config.tile && (!config.columns || config.group)) return wrong("tile needs columns=N, and no groups of columns");
  if (config.stripes && !config.columns) return wrong("stripes needs columns=N");
  if (stages.sums_groups() && !config.columns) return wrong("columns=N is needed: groups of columns are summed");
  if (stages.sums_groups() && config.cluster > 1)
    return wrong("cluster: groups of columns are summed by the one block that has the row");
  TRIREME_CHECK(config.simd ? is_consistent_simd(config) : is_consistent_threads(config, stages.reduces()));
  return is_short_code(config, instructions);
}

}  // namespace

Status lowerable(const Program& program, const Config& config, const Stages& stages) {
  TRIREME_CHECK(is_lowered(program));
  if (config.entries && !entry_sums(program, config.columns).rows) return no_entries();
  if (config.tile && !tiled_by(program, config.layout, config.columns))
    return wrong("tile: operands stand on rows i / m and i % m, and results are per row");
  return is_consistent(config, stages, instructions_a_vector(program, {}));
}

Validity::Validity(const Program& program, const Machine& machine, const Facts& facts)
    : program_(program),
      machine_(machine),
      facts_(facts),
      stages_(stages_on(machine, program, facts)),
      shape_(shape_of(program, facts.layout)),
      instructions_(instructions_a_vector(program, machine.instructions)),
      group_(machine.simd ? 0 : group_of_stripes(program, facts.columns)),
      lane_by_lane_(machine.simd &&
                    goes_lane_by_lane(program, facts.layout, facts.columns, machine.lanes(*program.compute))),
      across_(goes_across(program)),
      tiled_(tiled_by(program, facts.layout, facts.columns).has_value()),
      entries_(entry_sums(program, facts.columns).rows > 0),
      lowered_(is_lowered(program)) {}

Status Validity::operator()(const Config& given) const {
  Config config = given;
  config.group = group_;
  if (config.simd != machine_.simd)
    return wrong(std::string("this machine takes ") + (machine_.simd ? "simd" : "threads") + " configs");
  if (!lowered_) return lowered_.error();
  TRIREME_CHECK(is_consistent(config, stages_, instructions_));
  if (config.entries && !entries_) return no_entries();
  if (config.tile && !tiled_) return wrong("tile: operands stand on rows i / m and i % m, and results are per row");
  return machine_.simd ? fits_simd(config) : fits_threads(config);
}

Status Validity::fits_simd(const Config& config) const {
  const int lanes = machine_.lanes(*program_.compute);
  if (config.lanes != lanes)
    return wrong(fmt::format("lanes={}; this machine has {} in {}", config.lanes, lanes, name(*program_.compute)));
  if (config.across) {
    if (facts_.together < config.lanes || !across_)
      return wrong("across: as many rows as lanes lie side by side in all arrays, and indices are plain");
    return Done{};
  }
  std::int64_t chunks = contract::stripe / lanes;
  if (!is_power(config.unroll, chunks))
    return wrong(fmt::format("unroll={}; a power of two up to {} goes", config.unroll, chunks));
  if (config.columns != 0 && config.columns != facts_.columns)
    return wrong(fmt::format("columns={}; the problem has {}", config.columns, facts_.columns));
  if (!config.stripes) return Done{};
  const std::int64_t stripes = contract::stripes(facts_.columns);
  if (lane_by_lane_) return wrong("stripes: this program goes lane by lane somewhere, and takes loops");
  if (config.columns == 0 || config.stripes != next_power(stripes) || config.stripes > 16)
    return wrong(
        fmt::format("stripes={}; rows of up to 4096 columns may be unrolled, with columns=N and the power of "
                    "two that holds them",
                    config.stripes));
  return Done{};
}

Status Validity::fits_threads(const Config& config) const {
  if (config.columns != facts_.columns)
    return wrong(fmt::format("columns={}; the problem has {}", config.columns, facts_.columns));
  const int widest = shape_.widest_vector(facts_, group_);
  if (config.vector > widest)
    return wrong(fmt::format("vector={}; a power of two up to {} goes: 16 bytes, and what the arrays' places allow",
                             config.vector, widest));
  if (config.groups > 1 && config.lanes != 32)
    return wrong(fmt::format("lanes={}; several groups have 32 each", config.lanes));
  const std::int64_t threads = std::int64_t{config.lanes} * config.groups * config.teams;
  if (config.resident * threads > machine_.multiprocessor.threads)
    return wrong(fmt::format("resident={}; a processor holds {} threads, and these blocks have {}", config.resident,
                             machine_.multiprocessor.threads, threads));
  if (config.cluster > (machine_.clusters ? 16 : 1) && stages_.reduces())
    return wrong(fmt::format("cluster={}; blocks that share a row's sums are {}", config.cluster,
                             machine_.clusters ? "1 to 16" : "for machines that have clusters"));
  if (const std::int64_t shared = shape_.shared_bytes(config); shared > machine_.shared_bytes)
    return wrong(fmt::format("{}: {} bytes of shared memory; a block has at most {}",
                             config.ring   ? "ring"
                             : config.tile ? "tile"
                                           : "groups",
                             shared, machine_.shared_bytes));
  return Done{};
}

Status valid(const Program& program, const Config& config, const Machine& machine, const Facts& facts) {
  return Validity(program, machine, facts)(config);
}

}  // namespace trireme
