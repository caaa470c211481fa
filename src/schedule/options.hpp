// The options of a schedule: their words, their values, and the kinds of schedules in which they mean something. Text
// (config_text.cpp) and validity (valid.cpp) walk this table.
#pragma once
#include <span>
#include <string_view>

#include "schedule/config.hpp"

namespace trireme {

// How a row is walked: each has a lowering of its own, or a branch of one.
enum ScheduleKind : unsigned {
  simd_loops = 1,
  simd_stripes = 2,
  simd_across = 4,
  simd_tiles = 8,
  thread_loops = 16,
  thread_stripes = 32,
  thread_tiles = 64,
};
inline constexpr std::string_view kind_names[] = {"simd in loops",    "simd with stripes", "simd with across",
                                                  "simd with tile",   "threads in loops",  "threads with stripes",
                                                  "threads with tile"};

constexpr ScheduleKind kind_of(const Config& config) {
  if (!config.simd) return config.tile ? thread_tiles : config.stripes ? thread_stripes : thread_loops;
  return config.across ? simd_across : config.tile ? simd_tiles : config.stripes ? simd_stripes : simd_loops;
}

struct Option {
  std::string_view name;
  int Config::*number = nullptr;  // or
  bool Config::*flag = nullptr;
  int unsaid = 0;      // the number that need not be said, and goes anywhere
  unsigned kinds = 0;  // of schedules that have it
  int least = 0, most = 0;
  bool power = false;  // of two

  bool said(const Config& config) const { return flag ? config.*flag : config.*number != unsaid; }
};

inline constexpr unsigned any_threads = thread_loops | thread_stripes | thread_tiles;
inline constexpr unsigned any_simd = simd_loops | simd_stripes | simd_across | simd_tiles;
inline constexpr unsigned any_stripes = simd_stripes | thread_stripes;

inline constexpr Option schedule_options[] = {
    {"lanes", &Config::lanes, nullptr, 0, any_simd | any_threads, 1, 64, true},
    {"vector", &Config::vector, nullptr, 1, any_threads, 1, 16, true},
    {"groups", &Config::groups, nullptr, 1, any_threads, 1, 1024},
    {"cluster", &Config::cluster, nullptr, 1, thread_stripes, 1, 4096},
    {"rows", &Config::rows, nullptr, 1, any_threads | simd_stripes | simd_across, 1, 1 << 20},
    {"teams", &Config::teams, nullptr, 1, thread_stripes, 1, 1024},
    {"stripes", &Config::stripes, nullptr, 0, any_stripes, 1, 64, true},
    {"unroll", &Config::unroll, nullptr, 16, simd_loops | simd_across | simd_tiles, 1, 128, true},
    {"ring", &Config::ring, nullptr, 0, thread_stripes, 2, 8},
    {"resident", &Config::resident, nullptr, 0, any_threads, 1, 32},
    {"tile", &Config::tile, nullptr, 0, simd_tiles | thread_tiles, 2, 64, true},
    {"reload", nullptr, &Config::reload, 0, any_stripes},
    {"hoist", nullptr, &Config::hoist, 0, any_stripes},
    {"stage", nullptr, &Config::stage, 0, thread_stripes},
    {"entries", nullptr, &Config::entries, 0, thread_stripes},
    {"streaming", nullptr, &Config::streaming, 0,
     simd_loops | simd_stripes | simd_across | thread_loops | thread_stripes},
    {"prefetch", nullptr, &Config::prefetch, 0, simd_loops | simd_stripes | simd_across},
    {"overlap", nullptr, &Config::overlap, 0, simd_loops | simd_across},
    {"across", nullptr, &Config::across, 0, simd_across}};

}  // namespace trireme
