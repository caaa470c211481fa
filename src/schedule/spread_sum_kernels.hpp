// The kernels of spread_sums.hpp. Slots: pointers to what is read and to what is written, then the numbers.
#pragma once
#include <string>

#include "layout/array.hpp"
#include "schedule/kernel.hpp"

namespace trireme {

inline constexpr int chunk_stripes = 64;  // a warp sums so many; a power of two: a chunk is a subtree of the row sum

// How the k-th index of an entry is found, by the cheapest of three ways.
enum class Walk : std::uint8_t {
  OneRun,   // entry * run + k
  Strided,  // k * period + entry: runs of one
  Runs,
};

// Numbers: input's row stride, wide, chunks; run, period, boundary, counts of the columns. Unit: (row, entry, chunk).
Kernel lower_stripes(std::string name, Type compute, Walk walk);

// Numbers: input's row stride, wide, blocks at most; run, period - run, boundary, counts and row blocks of the rows.
// Unit: (entry, block, column).
Kernel lower_blocks(std::string name, Type compute);

// Numbers: wide, values of an entry at most; boundary and counts of values, by the entry's row or column; the result's
// strides, then its jumps. Unit: (row, column) of the result.
Kernel lower_pairs(std::string name, Type compute, Type stored, bool by_row, const ArrayLayout& layout);

}  // namespace trireme
