// Fills the slots of a kernel's `args`, and cuts its rows into blocks: shared by all devices.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "devices/device.hpp"
#include "schedule/kernel.hpp"

namespace trireme {

// How a class of column sums is cut, by the contract's rule 5, and what its partial sums take.
struct SumBlocks {
  Shares rows;
  std::int64_t entries = 1, wide = 1;                       // rows of entries, entries of a row
  std::array<std::int64_t, 3> row_block = {}, blocks = {};  // by kind of entry; 0 blocks where there are none
  std::int64_t most = 0;                                    // blocks of an entry
  std::int64_t stride = 0;                                  // values from one partial row to the next
  std::int64_t values = 0;                                  // of the workspace

  std::int64_t largest() const { return std::max({row_block[0], row_block[1], row_block[2]}); }
  std::int64_t number(SumNumber which, std::int64_t rows) const;
};
SumBlocks sum_blocks(const SumClass& sums, std::int64_t rows, std::int64_t columns);

// How a kernel's rows are cut, and the workspace that all kernels ask for.
struct Blocks {
  std::int64_t units = 0;      // what the kernel's first and last count: rows, blocks of entries' own rows, or entries
  std::int64_t row_block = 1;  // calls begin at multiples of it
  std::int64_t count = 0;
  std::int64_t workspace_bytes = 0;
};
Blocks cut_rows(const Kernels& kernels, std::int64_t rows, std::int64_t columns);  // of kernels.rows
Blocks cut_rows(const Kernels& kernels, const Kernel& kernel, std::int64_t rows, std::int64_t columns);
// Other blocks than the contract's, to measure them: where all sums are per column.
Blocks cut_rows(const Kernels& kernels, std::int64_t rows, std::int64_t columns, std::int64_t row_block);

// Entries that a kernel of kernels.columns counts.
std::int64_t entries_of(const Kernels& kernels, const Kernel& kernel, std::int64_t rows, std::int64_t columns);

// Units first .. last of one call: whole row blocks, at most `wanted` rows where that is not 0.
std::int64_t rows_of_a_call(const Blocks& blocks, std::int64_t wanted);

struct Memory {
  std::uint64_t partials = 0;  // address of the workspace
  std::uint64_t scratch = 0;   // simd machines: address of this thread's own memory
};
std::vector<std::uint64_t> fill_slots(const Kernels& kernels, const Program& program, const Problem2d& problem,
                                      const Blocks& blocks, const Memory& memory);
// The same into `args`, which has kernels.rows.slots.size() entries.
void fill_slots(const Kernels& kernels, const Program& program, const Problem2d& problem, const Blocks& blocks,
                const Memory& memory, std::uint64_t* args);

// Scratch a simd kernel needs for rows of so many columns.
std::int64_t scratch_bytes(const Kernels& kernels, std::int64_t columns);

// The largest power of two of elements, at most 16, that divides the columns, and the strides and addresses of all
// arrays where those are not multiples of 16 bytes. Allocates nothing.
std::int64_t aligned_elements(const Program& program, const Problem2d& problem);

// Rows that lie side by side in every array that has rows, before some stride ends; 0 where an array's do not.
std::int64_t rows_together(const Program& program, const Problem2d& problem);

// `layout` with arrays per element, indexed plainly, whose columns lie backwards said to; nothing where there are none,
// or where the program looks at columns in other ways too.
std::optional<Layout> backwards_layout(const Layout& layout, const Program& program, const Problem2d& problem);
// Do the columns that it says so of lie backwards? Allocates nothing.
bool lies_backwards(const Layout& layout, const Problem2d& problem);

// What the heuristics may rely on. The first: how the arrays' addresses and strides are aligned and which rows lie side
// by side, for the layout that `facts` has.
void fill_alignment_facts(const Program& program, const Problem2d& problem, Facts& facts);
Facts facts_of(const Program& program, const Problem2d& problem);

// Strides that the kernels were not compiled for are refused here.
Status check_layout(const Layout& compiled, const Program& program, const Problem2d& problem);

}  // namespace trireme
