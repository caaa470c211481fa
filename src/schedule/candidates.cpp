#include "schedule/candidates.hpp"

#include <utility>

#include "ir/contract.hpp"
#include "schedule/shape.hpp"

namespace trireme {
namespace {

std::vector<Config> for_simd(const Config& chosen) {
  std::vector<Config> configs;
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

  void long_rows(int vector) {
    for (int cluster : {1, 2, 4, 8, 16})
      for (int each : {1, 2, 4, 8}) {
        std::int64_t groups = (stripes_ + each * cluster - 1) / (each * cluster);
        if (cluster > 1) groups = next_power(groups);
        if (groups > 32 || each > next_power(stripes_) || groups * each * cluster >= 2 * next_power(stripes_)) continue;
        if (cluster > 1 && (!machine_.clusters || chosen_.columns < (reduces_ ? 8192 : 2048))) continue;
        if (cluster == 16 && chosen_.columns < 131072) continue;
        Config config = chosen_;
        config.vector = vector;
        config.lanes = 32;
        config.stripes = each;
        config.groups = static_cast<int>(groups);
        config.cluster = cluster;
        walks(config);
      }
  }

  // How many rows a team takes, and what runs ahead.
  void walks(Config config) {
    bool alone = config.groups * config.cluster == 1;
    config.teams = alone ? 128 / config.lanes : 1;
    for (int rows : {1, 4}) {
      if ((sums_ || !reduces_) && rows > 1) continue;
      for (int ring : {0, 2, 3})
        for (bool reload : {false, true}) {
          if (ring && !sums_ && rows == 1) continue;
          if (reload && (!reduces_ || (!ring && config.stripes < 4))) continue;
          config.rows = rows;
          config.ring = ring;
          config.reload = reload;
          config.hoist = sums_ || rows > 1 || config.stripes <= 2;
          configs_.push_back(config);
        }
    }
    config.streaming = !config.streaming;
    config.rows = 1;
    config.ring = 0;
    config.reload = false;
    configs_.push_back(config);
  }

  const Config& chosen_;
  const Machine& machine_;
  const int widest_;  // vector
  const bool sums_, reduces_;
  const std::int64_t stripes_;
  std::vector<Config> configs_;
};

}  // namespace

std::vector<Config> candidate_configs(const Program& program, const Machine& machine, const Facts& facts) {
  Config chosen = choose_config(program, machine, facts);
  std::vector<Config> configs =
      chosen.simd ? for_simd(chosen) : Threads(chosen, machine, facts, shape_of(program, facts.layout)).all();
  configs.insert(configs.begin(), chosen);
  return configs;
}

}  // namespace trireme
