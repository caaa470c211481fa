#include "schedule/valid.hpp"

#include <fmt/format.h>

#include <bit>

#include "ir/contract.hpp"
#include "ir/groups.hpp"
#include "ir/integers.hpp"
#include "schedule/across.hpp"
#include "schedule/shape.hpp"
#include "schedule/sum_classes.hpp"
#include "schedule/tiles.hpp"

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

Status is_consistent_simd(const Config& config) {
  if (config.vector != 1 || config.groups != 1 || config.teams != 1 || config.cluster != 1 || config.ring != 0 ||
      config.stage || config.entries)
    return wrong("vector, groups, teams, cluster, ring, stage and entries are for thread machines");
  if (!config.across) return Done{};
  if (config.rows < 1 || config.rows > most_across_registers || config.unroll < 2 || !is_power(config.unroll, 16) ||
      config.stripes || config.columns)
    return wrong("across: rows is 1 to 32, unroll 2, 4, 8 or 16, and stripes and columns are open");
  return Done{};
}

Status is_consistent_threads(const Config& config, bool reduces) {
  if (!config.columns) return wrong("thread machines fix the number of columns");
  if (!is_power(config.lanes, 32)) return wrong("lanes is a power of two up to 32");
  if (!is_power(config.vector, 16)) return wrong("vector is a power of two up to 16");
  if (config.groups < 1 || config.teams < 1 || config.rows < 1 || config.groups * config.teams * config.lanes > 1024)
    return wrong("a block has 1 to 1024 threads: lanes * groups * teams");
  if (config.teams > 1 && config.groups * config.cluster > 1) return wrong("teams share a block, not a row");
  if (config.cluster < 1 || config.cluster > 4096) return wrong("cluster is 1 to 4096");
  if (config.resident < 0 || config.resident > 32) return wrong("resident is at most 32");
  if (config.ring < 0 || config.ring == 1 || config.ring > 8) return wrong("ring is 0 or 2 to 8");
  // A chunk that reached into the next stripe would take its columns twice.
  if (std::int64_t{config.lanes} * config.vector > contract::stripe && config.columns > contract::stripe)
    return wrong(fmt::format("{} lanes of {} elements are more than a stripe of {}", config.lanes, config.vector,
                             contract::stripe));
  if (config.group % config.vector)
    return wrong(fmt::format("a group of {} columns is not cut by vectors of {}", config.group, config.vector));
  if (config.stage && (!config.ring || config.teams > 1 || config.hoist))
    return wrong("stage needs a ring and one team a block, and excludes hoist");
  if (config.entries && !config.stripes) return wrong("entries needs stripes");
  if (!config.stripes) {
    if (config.cluster > 1 || config.teams > 1 || config.ring) return wrong("cluster, teams and ring need stripes");
    return Done{};
  }
  if (!is_power(config.stripes, 64)) return wrong("stripes is a power of two up to 64");
  if (std::int64_t{config.stripes} * config.groups * config.cluster < config.stripes_of_row())
    return wrong(fmt::format("stripes * groups * cluster * {} columns do not hold the row", config.stripe()));
  if (config.cluster > 1 && !is_power(config.groups, 32)) return wrong("a cluster's groups are a power of two");
  if (config.cluster > config.lanes && reduces)
    return wrong("a group sends its sums to a cluster's blocks lane by lane");
  return Done{};
}

Status is_consistent_tile(const Config& config) {
  if (config.tile < 2 || !is_power(config.tile, config.lanes)) return wrong("tile is a power of two up to the lanes");
  if (!config.columns) return wrong("tile fixes the number of columns");
  if (config.across || config.stripes || config.reload || config.hoist || config.streaming || config.prefetch ||
      config.overlap || config.teams > 1 || config.cluster > 1 || config.ring || config.group)
    return wrong("tile goes with lanes, vector, groups, rows and unroll alone");
  return Done{};
}

Status is_consistent(const Config& config, const Stages& stages) {
  if (config.tile) TRIREME_CHECK(is_consistent_tile(config));
  if (stages.sums_groups() && (!config.columns || config.cluster > 1))
    return wrong("sums of columns that share an entry fix the number of columns, and one block has the row");
  if ((config.hoist || config.reload) && !config.stripes) return wrong("hoist and reload need stripes");
  if (config.stripes && !config.columns) return wrong("unrolled stripes fix the number of columns");
  return config.simd ? is_consistent_simd(config) : is_consistent_threads(config, stages.reduces());
}

}  // namespace

Status lowerable(const Program& program, const Config& config, const Stages& stages) {
  TRIREME_CHECK(is_lowered(program));
  if (config.entries && !entry_sums(program, config.columns).rows) return no_entries();
  if (config.tile && !tiled_by(program, config.layout, config.columns))
    return wrong("tile: operands stand on rows i / m and i % m, and results are per row");
  return is_consistent(config, stages);
}

Validity::Validity(const Program& program, const Machine& machine, const Facts& facts)
    : program_(program),
      machine_(machine),
      facts_(facts),
      stages_(stages_on(machine, program, facts)),
      shape_(shape_of(program, facts.layout)),
      group_(machine.simd ? 0 : group_of_stripes(program, facts.columns)),
      lane_by_lane_(machine.simd &&
                    goes_lane_by_lane(program, facts.layout, facts.columns,
                                      machine.register_bytes / static_cast<int>(bytes(*program.compute)))),
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
  TRIREME_CHECK(is_consistent(config, stages_));
  if (config.entries && !entries_) return no_entries();
  if (config.tile && !tiled_) return wrong("tile: operands stand on rows i / m and i % m, and results are per row");
  return machine_.simd ? fits_simd(config) : fits_threads(config);
}

Status Validity::fits_simd(const Config& config) const {
  int lanes = machine_.register_bytes / static_cast<int>(bytes(*program_.compute));
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
  if (config.groups > 1 && config.lanes != 32) return wrong("several groups have 32 lanes each");
  if (config.cluster > (machine_.clusters ? 16 : 1) && stages_.reduces())
    return wrong("blocks that share a row's sums are 1 to 16, where the machine has clusters");
  if (const std::int64_t shared = shape_.shared_bytes(config); shared > machine_.shared_bytes)
    return wrong(fmt::format("{} bytes of shared memory; a block has at most {}", shared, machine_.shared_bytes));
  return Done{};
}

Status valid(const Program& program, const Config& config, const Machine& machine, const Facts& facts) {
  return Validity(program, machine, facts)(config);
}

}  // namespace trireme
