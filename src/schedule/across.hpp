// Kernels whose lanes are rows: for arrays whose rows lie side by side and whose columns do not. A register holds one
// column of as many rows as it has lanes, so nothing is copied and nothing shuffled; a row's sum is made lane by lane
// in the contract's order, from partial sums in scratch.
#pragma once
#include "schedule/config.hpp"
#include "schedule/kernel.hpp"
#include "schedule/stages.hpp"

namespace trireme {

// Can a program be lowered so? Not where indices are divided, wrapped, rotated or compared. Sums over rows want row
// blocks that are multiples of the lanes.
bool goes_across(const Program& program);

// Registers of rows that a turn takes.
inline constexpr int most_across_registers = 32;

// Of a column, what a turn takes at least: whole lines; from memory more, since what the processor fetches beside a
// short piece is of use to nobody.
constexpr std::int64_t across_piece_bytes(bool from_memory) { return from_memory ? 256 : 64; }

// `config.rows` registers of rows at a time, `config.unroll` columns between two partial sums.
void lower_across(const Program& program, const Config& config, Kernel& kernel);

}  // namespace trireme
