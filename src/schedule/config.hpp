// How a program is laid over a machine: one small struct, chosen by heuristics here, searched by the tuner.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.hpp"

namespace trireme {

// What of the arrays' layout is fixed in the code; one entry per operand and result, or none where all are plain.
struct Layout {
  std::vector<bool> strided_operands, strided_results;  // columns do not lie side by side
  bool strided() const {
    auto any = [](const std::vector<bool>& flags) {
      return std::find(flags.begin(), flags.end(), true) != flags.end();
    };
    return any(strided_operands) || any(strided_results);
  }
};

struct Config {
  bool simd = true;
  int lanes = 16;            // lanes a group: the simd width, or the threads (a power of two up to 32) that shuffle
  int vector = 1;            // consecutive elements a thread loads at once; 1 on simd machines
  int groups = 1;            // groups that share a row and meet at barriers
  int teams = 1;             // rows side by side in a block; more than one only where groups is 1
  std::int64_t columns = 0;  // fixed in the code; 0: any number of columns
  int stripes = 0;           // stripes a group keeps in registers, a power of two, fully unrolled; 0: loops, reloading
  int unroll = 16;           // vectors of a stripe unrolled in a loop, a power of two
  int ring = 0;              // rows under way in scratch by asynchronous copies; 0: none
  bool reload = false;       // unrolled stripes: later sweeps load again instead of keeping registers
  bool hoist = false;        // unrolled stripes: values per column are loaded once, before the first row
  bool streaming = false;    // element results bypass the caches
  Layout layout = {};        // of the problem; no choice
};

std::string print(const Config& config);

// What a machine offers.
struct Machine {
  bool simd = true;
  int register_bytes = 64;        // of a simd register
  std::int64_t shared_bytes = 0;  // a block's scratch on thread machines
  int processors = 1;             // blocks worth having in flight, for thread machines
};

// Do simd machines go lane by lane somewhere: rotated, divided or wrapped columns, columns that do not lie side by
// side, comparisons of integers?
bool goes_lane_by_lane(const Program& program, const Layout& layout);

struct Facts {
  std::int64_t rows = 0, columns = 0;
  std::int64_t alignment = 1;  // elements that may be read at once: a power of two that divides the columns
  Layout layout = {};
};

Config choose_config(const Program& program, const Machine& machine, const Facts& facts);

}  // namespace trireme
