// Arrays whose columns do not lie side by side are copied side by side for a kernel's call, results back after it.
// Vector code on copies is several times faster than taking elements one by one, and rows that lie among each other are
// read a cache line at a time, once.
#pragma once
#include <string>
#include <vector>

#include "devices/arguments.hpp"
#include "layout/indexing.hpp"
#include "targets/x86/emit.hpp"

namespace trireme::cpu {

// Rows first .. last of an array, side by side in memory.
struct DenseRows {
  std::byte* memory;  // where row `first` begins
  std::int64_t row_bytes, first, last, columns;
  bool far;  // the array outgrows the second cache
};
bool rows_lie_closer(const Array& array, std::int64_t rows, std::int64_t columns);  // than columns do
void pack(x86::Isa isa, const Array& array, const DenseRows& to);
void unpack(x86::Isa isa, const Array& array, const DenseRows& from, bool streaming);

// What a problem's calls copy, and where to. Arrays per element go as many rows at a time as stay in a cache, in each
// worker's own memory; others (weights, column sums) as a whole, in memory that all workers share.
class Packing {
 public:
  // `compiled`: with the layout that remains().
  Packing(const Program& program, const Layout& layout, const Kernels& compiled, x86::Isa isa);
  static Layout remains(const Layout& layout);

  bool empty() const { return packed_.empty(); }
  std::string names() const;

  // For any strides; for those of a problem fewer rows may be better.
  std::int64_t rows_at_once(const Blocks& blocks, std::int64_t rows, std::int64_t columns,
                            const Problem2d* problem = nullptr) const;
  // Rows whose entries share lines: they are one worker's, so that no two write to the same line.
  std::int64_t rows_together(const Problem2d& problem) const;
  std::int64_t shared_bytes(std::int64_t rows, std::int64_t columns) const;
  std::int64_t worker_bytes(std::int64_t rows_at_once, std::int64_t columns) const;

  // One problem: `begin` once, `begin_rows` and `finish_rows` around each call for some rows, `finish` once.
  struct Run {
    const Problem2d& problem;
    std::byte* shared;
    std::int64_t rows_at_once;
    bool streaming;  // results are larger than the caches
  };
  void begin(const Run& run) const;
  void point(const Run& run, std::uint64_t* args) const;  // slots of shared copies, and strides
  void begin_rows(const Run& run, std::int64_t first, std::int64_t last, std::byte* own, std::uint64_t* args) const;
  void finish_rows(const Run& run, std::int64_t first, std::int64_t last, const std::byte* own) const;
  void finish(const Run& run) const;

 private:
  struct Packed {
    std::string name;
    bool result = false, by_rows = false;
    std::size_t index = 0;
    Type type = Type::F32;
    Spread spread;
    int pointer_slot = -1, stride_slot = -1;
    std::int64_t row_bytes(std::int64_t columns) const;
  };
  static bool far(const Packed& packed, std::int64_t rows, std::int64_t columns);
  static const Array& array_of(const Problem2d& problem, const Packed& packed) {
    return (packed.result ? problem.results : problem.operands)[packed.index];
  }
  // each(packed, its array, [rows,] columns, where its copy lies)
  template <typename Each>
  void each_shared(const Run& run, Each&& each) const;
  template <typename Each>
  void each_by_rows(const Run& run, const std::byte* own, Each&& each) const;
  Indexing extents(const Packed& packed, std::int64_t columns) const;

  Program program_;
  x86::Isa isa_;
  std::vector<Packed> packed_;
};

}  // namespace trireme::cpu
