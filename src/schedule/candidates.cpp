#include "schedule/candidates.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "ir/contract.hpp"
#include "ir/groups.hpp"
#include "schedule/cost.hpp"
#include "schedule/groups_apart.hpp"
#include "schedule/options.hpp"
#include "schedule/resolve_groups.hpp"
#include "schedule/sum_classes.hpp"
#include "schedule/valid.hpp"

namespace trireme {
namespace {

std::vector<Config> for_simd(const Config& chosen) {
  std::vector<Config> configs;
  if (chosen.across) {
    for (int rows : {1, 2, 4, 8})
      for (int unroll : {2, 4, 8})
        for (bool streaming : {false, true}) {
          Config other = chosen;
          other.rows = rows;
          other.unroll = unroll;
          other.streaming = streaming;
          configs.push_back(other);
        }
    return configs;
  }
  if (chosen.tile) {
    for (int tile : {chosen.lanes, chosen.lanes / 2})
      for (int unroll : {1, 2, 4, 8}) {
        Config other = chosen;
        other.tile = tile;
        other.unroll = unroll;
        configs.push_back(other);
      }
    return configs;
  }
  for (int unroll : {2, 4, 8, 16})
    for (bool streaming : {false, true})
      for (auto [prefetch, overlap] : {std::pair{false, false}, {true, false}, {true, true}}) {
        if (chosen.stripes && (unroll != 16 || prefetch)) continue;  // without loops there is nothing to unroll
        Config other = chosen;
        other.unroll = unroll;
        other.streaming = streaming;
        other.prefetch = prefetch;
        other.overlap = overlap;
        configs.push_back(other);
      }
  return configs;
}

// Every way to deal a row out to threads that leaves few of them without work, times every way to walk the rows.
class Threads {
 public:
  Threads(const Facts& facts, const Shape& shape, std::int64_t group, bool wraps, bool entries)
      : columns_(facts.columns),
        group_(group),
        wraps_(wraps),
        widest_(shape.widest_vector(facts, group)),
        sums_(shape.column_sums > 0),
        entries_(entries),
        reduces_(shape.reductions > 0),
        reads_rows_(shape.row_bytes > 0),
        reads_columns_(shape.column_bytes > 0) {}

  std::vector<Config> all() {
    for (int vector = widest_; vector >= 1 && vector >= widest_ / 4; vector /= 2)
      columns_ <= contract::stripe && !group_ ? short_rows(vector) : long_rows(vector);
    return std::move(configs_);
  }

 private:
  static std::int64_t up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

  // Rows of one stripe: some lanes of a warp each.
  void short_rows(int vector) {
    for (int lanes : {4, 8, 16, 32}) {
      const std::int64_t chunks = up(columns_, std::int64_t{lanes} * vector);
      if (chunks > 16 || (lanes > 4 && lanes / 2 * vector >= columns_)) continue;
      add({.simd = false, .lanes = lanes, .vector = vector, .teams = 128 / lanes, .columns = columns_, .stripes = 1});
    }
  }

  void long_rows(int vector) {
    const Config warps{.simd = false, .lanes = 32, .vector = vector, .columns = columns_, .group = group_};
    const std::int64_t stripes = warps.stripes_of_row();
    for (int each : {1, 2, 4, 8, 16, 32}) {
      if (each >= 2 * stripes) continue;
      if (each > 8 && (!wraps_ || each * chunks_of(warps) * vector > 64))
        break;  // narrow stripes, of which registers hold more
      for (std::int64_t groups = 1; groups <= 32; ++groups) {
        const std::int64_t cluster = up(stripes, each * groups);
        // One block takes any number of warps. Blocks of a cluster have a power of two, and a fifth at most idles.
        if (cluster > 1 && (next_power(groups) != groups || cluster * each * groups * 4 > stripes * 5)) continue;
        if (cluster == 1 && each * (groups - 1) >= stripes) {
          // Wrapped groups want a power of two.
          if (!wraps_ || each * (groups / 2) >= stripes) break;
          if (next_power(groups) != groups) continue;
        }
        Config config = warps;
        config.stripes = each;
        config.groups = static_cast<int>(groups);
        config.cluster = static_cast<int>(cluster);
        if (groups * cluster == 1) config.teams = 4;
        add(config);
      }
    }
    Config loops = warps;  // the row is read once a sweep
    loops.groups = 32;
    loops.streaming = true;
    configs_.push_back(loops);
  }

  // How many rows a team takes one after the other, what runs ahead of it, and where weights wait.
  void add(Config config) {
    config.streaming = true;
    struct Walk {
      int rows, ring;
    };
    static constexpr Walk walks[] = {{1, 0}, {4, 0}, {2, 2}, {4, 2}, {4, 3}, {16, 3}};
    static constexpr Walk block_walks[] = {{1, 0}, {1, 2}, {1, 3}};  // column sums: a block of rows is a team's
    enum class Weights { Read, Hoisted, Staged };
    for (const Walk& walk : sums_ ? std::span<const Walk>(block_walks) : std::span<const Walk>(walks))
      for (bool reload : {false, true})
        for (Weights weights : {Weights::Read, Weights::Hoisted, Weights::Staged}) {
          if (walk.ring && (!reads_rows_ || !reduces_)) continue;
          if (reload && !reduces_) continue;
          if (weights != Weights::Read && !reads_columns_) continue;
          if (weights == Weights::Staged && (!walk.ring || config.teams > 1)) continue;
          config.rows = walk.rows;
          config.ring = walk.ring;
          config.reload = reload;
          config.hoist = weights == Weights::Hoisted;
          config.stage = weights == Weights::Staged;
          for (bool entries : {false, true}) {
            if (entries && !entries_) continue;
            config.entries = entries;
            configs_.push_back(config);
          }
        }
  }

  const std::int64_t columns_, group_;
  const bool wraps_;
  const int widest_;  // vector
  const bool sums_, entries_, reduces_, reads_rows_, reads_columns_;
  std::vector<Config> configs_;
};

// Only schedules whose groups' terms reach the least.
void keep_groups_in_registers(const Program& given, std::vector<Config>& configs) {
  if (configs.empty() || !has(given, Op::Group)) return;
  std::optional<Program> summed, made;
  const Program& program = resolve_groups(with_row_sums(given, summed), configs[0].columns, made);
  const std::int64_t group = group_of_stripes(program, configs[0].columns);
  std::vector<TermsReach> reach;
  for (Config config : configs) {
    config.group = group;
    reach.push_back(terms_reach(program, config));
  }
  const TermsReach least = *std::min_element(reach.begin(), reach.end());
  std::size_t k = 0;
  std::erase_if(configs, [&](const Config&) { return reach[k++] != least; });
}

// A block takes whole rows i / m, or where those are few, a part of one.
void add_tiles(const Program& program, const Facts& facts, const Shape& shape, std::vector<Config>& configs) {
  const std::optional<std::int64_t> m = tiled_by(program, facts.layout, facts.columns);
  if (!m) return;
  for (int tile : {8, 16, 32})
    for (int vector = std::min(shape.widest_vector(facts, 0), 4); vector >= 1; vector /= 2)
      for (int groups : {1, 2, 4, 8}) {
        const TileSides sides = tile_sides(tile);
        for (std::int64_t rows : {sides.quotients * *m, std::int64_t{4} * sides.remainders * groups})
          configs.push_back({.simd = false,
                             .lanes = 32,
                             .vector = vector,
                             .groups = groups,
                             .rows = static_cast<int>(std::min<std::int64_t>(rows, 1 << 20)),
                             .columns = facts.columns,
                             .tile = tile});
      }
}

}  // namespace

std::vector<Config> candidate_configs(const Program& program, const Machine& machine, const Facts& facts) {
  std::vector<Config> configs;
  if (machine.simd) {
    const Config chosen = choose_config(program, machine, facts);
    configs = for_simd(chosen);
    if (chosen.across) {  // or copies
      Facts others = facts;
      others.together = 0;
      for (Config& each : candidate_configs(program, machine, others)) configs.push_back(std::move(each));
    }
  } else {
    bool wraps = false;
    for (NodeId id = 0; id < program.size(); ++id)
      wraps = wraps || (program[id].op == Op::Group && group_of(program[id]).wraps && !group_of(program[id]).entries);
    const std::int64_t group = group_of_stripes(program, facts.columns);
    const Shape shape = shape_of(program, facts.layout);
    const bool entries = entry_sums(program, facts.columns).rows > 0;
    configs = Threads(facts, shape, group, wraps, entries).all();
    add_tiles(program, facts, shape, configs);
  }
  std::erase_if(configs, [valid = Validity(program, machine, facts)](const Config& each) { return !valid(each); });
  if (!machine.simd) keep_groups_in_registers(program, configs);
  return configs;
}

void sort_by_cost(const Program& program, const Machine& machine, const Facts& facts, std::vector<Config>& configs) {
  if (machine.simd) return;
  const ThreadCost cost(program, machine, facts);
  std::vector<std::pair<double, Config>> priced;
  for (Config& each : configs) priced.emplace_back(cost(each), std::move(each));
  std::stable_sort(priced.begin(), priced.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  configs.clear();
  for (auto& each : priced) configs.push_back(std::move(each.second));
}

std::vector<Config> neighbours(const Config& config) {
  std::vector<Config> configs;
  for (const Option& each : schedule_options) {
    if (!(each.kinds & kind_of(config))) continue;
    auto with = [&](auto value) {
      Config other = config;
      if constexpr (std::is_same_v<decltype(value), bool>) other.*each.flag = value;
      else other.*each.number = std::clamp(value, each.least, each.most);
      if (print(other) != print(config)) configs.push_back(std::move(other));
    };
    if (each.steps & steps::turned) with(!(config.*each.flag));
    if (each.steps & steps::small)
      for (int value : steps::small_numbers) with(value);
    if (!each.said(config)) continue;
    if (each.steps & steps::next) with(config.*each.number + 1);
    if (each.steps & steps::doubled) with(config.*each.number * 2);
    if (each.steps & steps::quadrupled) with(config.*each.number * 4);
    if (each.steps & steps::halved) with(config.*each.number / 2);
  }
  return configs;
}

}  // namespace trireme
