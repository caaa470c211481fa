#include "schedule/candidates.hpp"

#include <optional>
#include <utility>

#include "ir/contract.hpp"
#include "schedule/shape.hpp"
#include "schedule/sum_classes.hpp"

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

class Threads {
 public:
  Threads(const Config& chosen, const Machine& machine, const Facts& facts, const Shape& shape)
      : chosen_(chosen),
        machine_(machine),
        widest_(shape.widest_vector(facts)),
        sums_(shape.column_sums > 0),
        reduces_(shape.reductions > 0),
        stages_(shape.column_bytes > 0),
        stripes_(contract::stripes(chosen.columns)) {}

  std::vector<Config> all() {
    for (int vector = widest_; vector >= 1 && vector >= widest_ / 2; vector /= 2)
      stripes_ == 1 ? short_rows(vector) : long_rows(vector);
    return std::move(configs_);
  }

 private:
  // Rows of one stripe: a few lanes each, several chunks a lane or one.
  void short_rows(int vector) {
    for (int lanes : {4, 8, 16, 32}) {
      std::int64_t chunks = (chosen_.columns + lanes * vector - 1) / (lanes * vector);
      if (chunks > 8 || (lanes > 4 && lanes / 2 * vector >= chosen_.columns)) continue;
      Config config = chosen_;
      config.vector = vector;
      config.lanes = lanes;
      config.stripes = config.groups = config.cluster = 1;
      walks(config);
    }
  }

  // Blocks of a cluster take a power of two of stripes; a block alone takes what there is.
  void long_rows(int vector) {
    std::int64_t least = reduces_ ? 16 : 8;  // stripes of a row that a cluster is worth having for
    for (int each : {1, 2, 4, 8}) {
      if (each > next_power(stripes_)) continue;
      add_long(vector, each, (stripes_ + each - 1) / each, 1);
      for (std::int64_t groups : {1, 2, 4, 8, 16, 32}) {
        std::int64_t cluster = (stripes_ + each * groups - 1) / (each * groups);
        if (!machine_.clusters || stripes_ < least || cluster < 2 || cluster > 16 || each * groups < 4) continue;
        if (cluster * each * groups * 4 > stripes_ * 5) continue;  // a fifth would idle
        add_long(vector, each, groups, static_cast<int>(cluster));
      }
    }
  }

  void add_long(int vector, int each, std::int64_t groups, int cluster) {
    if (groups > 32) return;
    Config config = chosen_;
    config.vector = vector;
    config.lanes = 32;
    config.stripes = each;
    config.groups = static_cast<int>(groups);
    config.cluster = cluster;
    walks(config);
  }

  // How many rows a team takes, and what runs ahead.
  void walks(Config config) {
    bool alone = config.groups * config.cluster == 1;
    config.teams = alone ? 128 / config.lanes : 1;
    config.resident = 0;
    config.streaming = true;
    auto add = [&](int rows, int ring, bool reload, bool stage) {
      if (reload && (!reduces_ || (!ring && config.stripes < 4))) return;
      if (stage && (!stages_ || config.teams > 1)) return;
      config.rows = rows;
      config.ring = ring;
      config.reload = reload;
      config.stage = stage;
      config.hoist = !stage && (sums_ || rows > 1 || config.stripes <= 2);
      configs_.push_back(config);
    };
    for (bool reload : {false, true}) {
      add(1, 0, reload, false);
      if (!reduces_) continue;
      for (bool stage : {false, true}) {
        // A ring wants several rows. The widest vectors are for rows that come straight from memory.
        for (int ring : {2, 3})
          if (config.vector < 8 || ring == 2) add(sums_ ? 1 : 4, ring, reload, stage);
        if (!sums_ && config.vector < 8) add(16, 3, reload, stage);
      }
    }
  }

  const Config& chosen_;
  const Machine& machine_;
  const int widest_;  // vector
  const bool sums_, reduces_, stages_;
  const std::int64_t stripes_;
  std::vector<Config> configs_;
};

}  // namespace

std::vector<Config> candidate_configs(const Program& given, const Machine& machine, const Facts& facts) {
  std::optional<Program> made;
  const Program& program = with_row_sums(given, made);
  const Machine left = machine_for(program, machine);
  Config chosen = choose_config(program, machine, facts);
  std::vector<Config> configs =
      chosen.simd ? for_simd(chosen) : Threads(chosen, left, facts, shape_of(program, facts.layout)).all();
  configs.insert(configs.begin(), chosen);
  if (chosen.across) {  // or copies
    Facts others = facts;
    others.together = 0;
    for (Config& each : candidate_configs(program, machine, others)) configs.push_back(std::move(each));
  }
  return configs;
}

std::vector<Config> neighbours(const Config& config) {
  std::vector<Config> configs;
  auto with = [&](auto&& change) {
    Config other = config;
    change(other);
    if (print(other) != print(config)) configs.push_back(std::move(other));
  };
  if (config.simd) return configs;
  with([](Config& c) { c.streaming = !c.streaming; });
  if (!config.stripes) return configs;
  if (!config.stage) with([](Config& c) { c.hoist = !c.hoist; });
  with([](Config& c) { c.reload = !c.reload; });
  for (int resident : {1, 2, 3, 4, 6, 8})
    if (resident * config.groups * config.teams * config.lanes <= 2048) with([&](Config& c) { c.resident = resident; });
  if (config.ring) with([](Config& c) { c.ring = std::min(8, c.ring + 1); });
  if (config.rows > 1) {
    with([](Config& c) { c.rows *= 2; });
    with([](Config& c) { c.rows *= 4; });
    with([](Config& c) { c.rows /= 2; });
  }
  return configs;
}

}  // namespace trireme
