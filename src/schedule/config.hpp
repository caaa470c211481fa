// How a program is laid over a machine: one small struct, chosen by heuristics here, searched by the tuner.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/contract.hpp"
#include "ir/program.hpp"
#include "layout/array.hpp"
#include "trireme/type.hpp"

namespace trireme {

// What of the arrays' layout is fixed in the code.
struct Layout {
  std::vector<ArrayLayout> arrays;  // as Program::array counts them; none where all are plain
  std::vector<bool> over_operands;  // per result: it may lie on an operand, and is written when that has been read

  ArrayLayout array(std::size_t k) const { return k < arrays.size() ? arrays[k] : ArrayLayout{}; }
  bool strided() const { return any(&ArrayLayout::strided); }
  bool jumps() const { return any(&ArrayLayout::row_jumps); }
  bool backwards() const { return any(&ArrayLayout::backwards); }

 private:
  template <typename Member>
  bool any(Member member) const {
    return std::any_of(arrays.begin(), arrays.end(), [&](const ArrayLayout& each) { return each.*member != 0; });
  }
};

struct Config {
  bool simd = true;
  int lanes = 16;            // lanes a group: the simd width, or the threads (a power of two up to 32) that shuffle
  int vector = 1;            // consecutive elements a thread loads at once; 1 on simd machines
  int groups = 1;            // groups that share a row and meet at barriers
  int teams = 1;             // rows side by side in a block; more than one only where groups is 1
  int cluster = 1;           // blocks that share a row; groups is then a power of two
  int resident = 0;          // blocks that a processor is to hold at once, which bounds their registers; 0: unsaid
  int rows = 1;              // rows a team takes one after the other, where no column sums say so; simd: 2 for two
                             // unrolled rows in turn
  std::int64_t columns = 0;  // fixed in the code; 0: any number of columns
  int stripes = 0;           // stripes a group keeps in registers, a power of two, fully unrolled; 0: loops, reloading
  int unroll = 16;           // vectors of a stripe unrolled in a loop, a power of two
  int ring = 0;              // rows under way in scratch by asynchronous copies; 0: none
  bool reload = false;       // unrolled stripes: later sweeps load again instead of keeping registers
  bool hoist = false;        // unrolled stripes: values per column are loaded once, before the first row
  bool stage = false;        // with a ring, instead of hoist: values per column are copied to scratch, once
  bool entries = false;      // thread machines: a team takes all rows of an entry of sums over rows i / d, and adds up
                             // their blocks in registers
  bool streaming = false;    // element results bypass the caches
  bool prefetch = false;     // simd machines: while a row is at hand the next one is fetched
  bool overlap = false;      // simd machines, loops: a row's last sweep goes along with the next row's last but one
  bool compact = false;  // simd machines, loops: a sweep's code stands once and sums are halved in loops, for few bytes
  bool across = false;   // simd machines: lanes are rows, `rows` registers of them a turn, `unroll` columns summed at
                         // once, columns to come fetched (prefetch), or the next turn's (overlap)
  int tile = 0;          // rows whose sums are made together, where operands are shared by some of them (tiles.hpp), a
                         // power of two up to the lanes; simd: `unroll` vectors of a stripe become one partial sum
  Layout layout = {};    // of the problem; no choice
  std::int64_t group = 0;  // thread machines, of the problem (group_of_stripes): columns that take the place of rule
                           // 4's stripes; 0: none

  // Columns that are taken together: rule 4's stripe; or a group, or where a warp's lanes hold more, several, each of
  // them in a power of two of columns.
  std::int64_t stripe() const {
    if (!group) return contract::stripe;
    const auto place = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(group)));
    return group * std::max<std::int64_t>(1, lanes * vector / place);
  }
  std::int64_t stripes_of_row() const { return (columns + stripe() - 1) / stripe(); }
};

std::string print(const Config& config);
Result<Config> parse_config(std::string_view text);  // what print() says

// Instructions for one vector of elements on simd machines, for one element of a thread on the others; about.
struct InstructionCosts {
  struct Storage {
    int widen, narrow;          // to and from f32, the load or store among them
    int widen_f64, narrow_f64;  // what f64 takes beyond that
  };
  std::array<Storage, type_facts.size()> storage = {{{1, 1, 0, 0},    // f64
                                                     {1, 1, 1, 0},    // f32
                                                     {1, 2, 1, 8},    // f16
                                                     {2, 4, 1, 8},    // bf16
                                                     {10, 17, 1, 8},  // f8e4m3
                                                     {4, 17, 1, 8},   // f8e5m2
                                                     {2, 9, 1, 0},    // i8
                                                     {1, 5, 1, 0},    // i32
                                                     {60, 90, 0, 0},  // i64: lane by lane
                                                     {2, 9, 1, 0},    // u8
                                                     {9, 12, 1, 8},   // f8e8m0
                                                     {0, 0, 0, 0}}};  // f4e2m1: bytes and primitives
  int extremum = 3;                                                   // min and max: NaN wins, and -0 lies below +0
  int divide = 1, square_root = 1;
};

// Of a thread machine: what one of its processors holds and does.
struct Multiprocessor {
  int threads = 2048, blocks = 32, registers = 65536, schedulers = 4;
  int registers_a_thread = 255;
  int cluster_span = 16;      // processors that a cluster's blocks may lie on
  int line_bytes = 128;       // of memory
  double clock = 1.75e9;      // cycles a second
  double bandwidth = 4.1e12;  // bytes of memory a second, of all processors together
};

// What a machine offers. Its target declares it.
struct Machine {
  bool simd = true;
  int register_bytes = 64;        // of a simd register; 4: one value of any type
  std::int64_t cache_bytes = 0;   // results beyond it are stored past the caches; 0: there are no such stores
  std::int64_t shared_bytes = 0;  // a block's scratch on thread machines
  bool clusters = false;          // blocks can share a row
  int processors = 1;             // blocks worth having in flight, for thread machines
  bool across = false;            // kernels whose lanes are rows are worth making
  bool compact = false;           // few bytes of code go before speed
  InstructionCosts instructions = {};
  Multiprocessor multiprocessor = {};
  std::string_view tuned = {};  // the table of schedules that were measured on it (tuned.hpp); none if empty

  int lanes(Type compute) const { return std::max(1, register_bytes / static_cast<int>(bytes(compute))); }  // simd
};

// Are columns rotated, divided or wrapped somewhere, or compared as integers?
bool maps_columns(const Program& program);
// Does a rotation of a row leave its vectors as they are, in other places? Vectors begin at multiples of their lanes.
inline bool rotates_whole_vectors(std::int64_t rotate, std::int64_t columns, int lanes) {
  return rotate % lanes == 0 && (rotate == 0 || columns % lanes == 0);
}
// Do simd machines go lane by lane somewhere: where columns do not lie side by side, or where a vector of mapped
// columns may stand on entries that do not?
bool goes_lane_by_lane(const Program& program, const Layout& layout, std::int64_t columns, int lanes);

struct Facts {
  std::int64_t rows = 0, columns = 0;
  std::int64_t alignment = 1;          // elements that may be read at once: a power of two that divides the columns
  bool in_place = false;               // a result per element takes an operand's memory
  std::int64_t result_alignment = 64;  // bytes, up to a line: rows of results per element begin at multiples of them
  bool rows_apart = false;    // of an operand per element: the next row is another, and does not begin where a row ends
  std::int64_t together = 0;  // rows that lie side by side in every array that has rows, before some stride ends
  Layout layout = {};
  std::optional<Layout> backwards = {};  // where columns of some arrays lie backwards: the layout that says so
  std::optional<Config> config = {};     // to be taken instead of choosing one
};

Config choose_config(const Program& program, const Machine& machine, const Facts& facts);

// The given config, if it fits program, machine and facts; else a chosen one.
Result<Config> config_for(const Program& program, const Machine& machine, const Facts& facts);

}  // namespace trireme
