// Column sums into divided, wrapped and scalar results on thread machines: the contract's rule 5 as a few small kernels
// over the terms, an array [rows, columns] of values of the compute type.
//
//   stripes   of a row: sums the columns that share an entry, 64 stripes of them a warp
//   blocks    of rows that share an entry: adds the rows of a block in order, a thread each
//   pairs     adds up what one of these left, in neighbouring pairs, and stores it
//
// A kernel's units are numbered; it takes units first .. last, Launch::columns_covered of them a block.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "layout/array.hpp"
#include "layout/indexing.hpp"
#include "schedule/kernel.hpp"
#include "trireme/result.hpp"

namespace trireme {

// One launch of kernel number `kernel`.
struct SumLaunch {
  static constexpr std::size_t most_args = 10 + 4 * max_jumps;
  std::size_t kernel = 0;
  std::int64_t units = 0;
  std::array<std::uint64_t, most_args> args = {};
};

// How one result is summed.
class SpreadSum {
 public:
  // `layout`: the result's.
  SpreadSum(const Indexing& indexing, std::int64_t columns, Type compute, Type stored, const ArrayLayout& layout,
            const std::string& name);

  const std::vector<Kernel>& kernels() const { return kernels_; }
  std::int64_t workspace_bytes(std::int64_t rows) const;

  // Terms lie without gaps; all addresses are the device's. Calls launch(const SumLaunch&) -> Status in order.
  template <typename Launch>
  Status run(std::int64_t rows, std::uint64_t terms, const Array& result, std::uint64_t workspace,
             Launch&& launch) const {
    std::array<SumLaunch, 4> launches;
    std::size_t count = plan(rows, terms, result, workspace, launches);
    for (std::size_t k = 0; k < count; ++k)
      if (launches[k].units > 0) TRIREME_CHECK(launch(launches[k]));
    return Done{};
  }

 private:
  struct Extents;
  Extents extents(std::int64_t rows) const;
  std::size_t plan(std::int64_t rows, std::uint64_t terms, const Array& result, std::uint64_t workspace,
                   std::array<SumLaunch, 4>& launches) const;

  Indexing indexing_;
  std::int64_t columns_, wide_;  // columns; entries a row of the result
  std::int64_t value_bytes_;
  ArrayLayout layout_;
  bool along_, everything_;  // columns share entries; all share one
  std::int64_t chunks_;      // of 64 stripes, of the columns that share an entry, at most
  std::vector<Kernel> kernels_;
};

}  // namespace trireme
