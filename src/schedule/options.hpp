// The options of a schedule: their words, their values, the kinds of schedules in which they mean something, the pass
// that decides them and what the tuner tries of them. Text (config_text.cpp), validity (valid.cpp), passes
// (schedule_passes.cpp) and the tuner's steps (candidates.cpp) walk this table: another option is a field of Config, a
// line here, and what reads it.
#pragma once
#include <span>
#include <string_view>

#include "schedule/config.hpp"
#include "schedule/schedule_passes.hpp"

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

// What the tuner tries, one step from a good schedule: the flag turned; of a number that is said the next one, half of
// it, two and four times it; or some small numbers, said or not.
namespace steps {
enum : unsigned { turned = 1, next = 2, halved = 4, doubled = 8, quadrupled = 16, small = 32 };
inline constexpr int small_numbers[] = {1, 2, 3, 4, 6, 8};
}  // namespace steps

// The decisions of a schedule, in the order in which they build on each other.
inline constexpr SchedulePass pass_table[] = {
    {"place", "columns dealt out to lanes, chunks and stripes, rows to teams"},
    {"keep", "elements of unrolled stripes stay in registers from sweep to sweep"},
    {"hoist", "values per column are loaded before the first row"},
    {"entries", "sums over rows i / d: a team adds up the blocks of an entry in registers"},
    {"ring", "rows to come are copied to scratch"},
    {"stage", "values per column are copied to scratch"},
    {"prefetch", "the next row's lines are fetched"},
    {"stream", "results bypass the caches"},
    {"overlap", "a row's last sweep goes along with the next row's"},
};

struct Option {
  std::string_view name;
  int Config::*number = nullptr;  // or
  bool Config::*flag = nullptr;
  int unsaid = 0;       // the number that need not be said, and goes anywhere
  bool always = false;  // it is printed none the less
  unsigned kinds = 0;   // of schedules that have it
  int least = 0, most = 0;
  bool power = false;               // of two
  std::string_view pass = "place";  // that decides it
  bool undecided = false;           // what a flag is before that pass, where the kind has it
  unsigned steps = 0;

  bool said(const Config& config) const { return flag ? config.*flag : config.*number != unsaid; }
  void undecide(Config& config) const {
    if (flag) config.*flag = undecided && (kinds & kind_of(config));
    else config.*number = unsaid;
  }
};

inline constexpr unsigned any_threads = thread_loops | thread_stripes | thread_tiles;
inline constexpr unsigned any_simd = simd_loops | simd_stripes | simd_across | simd_tiles;
inline constexpr unsigned any_stripes = simd_stripes | thread_stripes;
inline constexpr unsigned no_tiles = simd_loops | simd_stripes | simd_across | thread_loops | thread_stripes;

// In the order in which they are printed.
inline constexpr Option schedule_options[] = {
    {.name = "lanes", .number = &Config::lanes, .kinds = any_simd | any_threads, .least = 1, .most = 64, .power = true},
    {.name = "vector",
     .number = &Config::vector,
     .unsaid = 1,
     .kinds = any_threads,
     .least = 1,
     .most = 16,
     .power = true},
    {.name = "groups", .number = &Config::groups, .unsaid = 1, .kinds = any_threads, .least = 1, .most = 1024},
    {.name = "cluster", .number = &Config::cluster, .unsaid = 1, .kinds = thread_stripes, .least = 1, .most = 4096},
    {.name = "rows",
     .number = &Config::rows,
     .unsaid = 1,
     .kinds = any_threads | simd_stripes | simd_across,
     .least = 1,
     .most = 1 << 20,
     .steps = steps::halved | steps::doubled | steps::quadrupled},
    {.name = "teams", .number = &Config::teams, .unsaid = 1, .kinds = thread_stripes, .least = 1, .most = 1024},
    {.name = "stripes", .number = &Config::stripes, .kinds = any_stripes, .least = 1, .most = 64, .power = true},
    {.name = "unroll",
     .number = &Config::unroll,
     .unsaid = 16,
     .always = true,
     .kinds = simd_loops | simd_across | simd_tiles,
     .least = 1,
     .most = 128,
     .power = true},
    {.name = "ring",
     .number = &Config::ring,
     .kinds = thread_stripes,
     .least = 2,
     .most = 8,
     .pass = "ring",
     .steps = steps::next},
    {.name = "resident",
     .number = &Config::resident,
     .kinds = any_threads,
     .least = 1,
     .most = 32,
     .steps = steps::small},
    {.name = "tile",
     .number = &Config::tile,
     .kinds = simd_tiles | thread_tiles,
     .least = 2,
     .most = 64,
     .power = true},
    {.name = "reload",
     .flag = &Config::reload,
     .kinds = any_stripes,
     .pass = "keep",
     .undecided = true,  // nothing outlasts a sweep
     .steps = steps::turned},
    {.name = "hoist", .flag = &Config::hoist, .kinds = any_stripes, .pass = "hoist", .steps = steps::turned},
    {.name = "stage", .flag = &Config::stage, .kinds = thread_stripes, .pass = "stage"},
    {.name = "entries", .flag = &Config::entries, .kinds = thread_stripes, .pass = "entries"},
    {.name = "streaming", .flag = &Config::streaming, .kinds = no_tiles, .pass = "stream", .steps = steps::turned},
    {.name = "prefetch",
     .flag = &Config::prefetch,
     .kinds = simd_loops | simd_stripes | simd_across,
     .pass = "prefetch"},
    {.name = "overlap", .flag = &Config::overlap, .kinds = simd_loops | simd_across, .pass = "overlap"},
    {.name = "compact", .flag = &Config::compact, .kinds = simd_loops},
    {.name = "across", .flag = &Config::across, .kinds = simd_across}};

}  // namespace trireme
