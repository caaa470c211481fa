// Arrays whose columns do not lie side by side are copied side by side for a kernel's call, results back after it.
// Vector code on copies is several times faster than taking elements one by one, and rows that lie among each other are
// read a cache line at a time, once.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "devices/arguments.hpp"
#include "devices/cpu/moves.hpp"
#include "layout/indexing.hpp"

namespace trireme::cpu {

// Rows first .. last of an array, side by side in memory.
struct DenseRows {
  std::byte* memory;  // where row `first` begins
  std::int64_t row_bytes, first, last, columns;
  bool beyond_cache;  // the array outgrows the second cache
};
bool rows_lie_closer(const Array& array, std::int64_t rows, std::int64_t columns);  // than columns do
void pack(const MoveTable& moves, const Array& array, const DenseRows& to);
// Streaming: past the caches; others see it after a fence.
void unpack(const MoveTable& moves, const Array& array, const DenseRows& from, bool streaming);

// Of the columns, where several work on the same copies.
struct Share {
  std::int64_t part = 0, of = 1;
};

// What a problem's calls copy, and where to. Arrays per element go some rows at a time, in each worker's own memory;
// others (weights, column sums) as a whole, in memory that all workers share.
//
// Where rows lie closer than columns, a line has entries of `together` rows, and lines are copied whole: a call's
// operands up to the end of the line that its last row lies in, its results up to the last complete line. What is left
// of that line, rows to come of operands and rows done of results, stays for the next call.
class Packing {
 public:
  // `compiled`: with the layout that remains().
  Packing(const Program& program, const Layout& layout, const Kernels& compiled, const MoveTable& moves);
  static Layout remains(const Program& program, const Layout& layout);

  bool empty() const { return packed_.empty(); }
  std::string names() const;

  struct Window {
    std::int64_t step;      // rows of a call
    std::int64_t together;  // rows that lines have entries of; such rows are one worker's but for its first and last
    std::int64_t held;      // rows that a worker's copies have room for
  };
  // Without a problem: room for any strides.
  Window window(const Blocks& blocks, std::int64_t rows, std::int64_t columns, std::int64_t chunk_rows,
                const Problem2d* problem = nullptr) const;
  std::int64_t shared_bytes(std::int64_t rows, std::int64_t columns) const;
  std::int64_t worker_bytes(std::int64_t held, std::int64_t columns) const;

  // One problem: `begin` once, `begin_rows` and `finish_rows` around each call for some rows, `finish` once.
  struct Run {
    const Problem2d& problem;
    std::byte* shared;
    Window window;
    bool streaming;  // results are larger than the caches
  };
  struct Worker {
    std::byte* copies;
    std::int64_t from, to;  // its rows
  };
  void begin(const Run& run) const;
  void point(const Run& run, std::uint64_t* args) const;  // slots of shared copies, and strides
  void begin_rows(const Run& run, const Worker& worker, std::int64_t first, std::int64_t last, std::uint64_t* args,
                  Share share = {}) const;
  void finish_rows(const Run& run, const Worker& worker, std::int64_t first, std::int64_t last, Share share = {}) const;
  void advance(const Run& run, const Worker& worker, std::int64_t first, std::int64_t last) const;  // once all have
  void finish(const Run& run) const;

  // Long rows are copied by all workers together: with copies of their own they would not fit the cache that they
  // share, and where row blocks cut lines two of them would read a line. The window for that, where it is so and its
  // copies fit those of so many workers.
  std::optional<Window> window_of_all(const Window& own, const Blocks& blocks, const Problem2d& problem,
                                      std::int64_t workers) const;

 private:
  struct Packed {
    std::string name;
    bool result = false, by_rows = false;
    bool read = true;  // an operand, or a result that accumulates
    std::size_t array = 0;
    Type type = Type::F32;
    Spread spread;
    int pointer_slot = -1, stride_slot = -1;
    std::int64_t row_bytes(std::int64_t columns) const;
  };
  static bool beyond_cache(const Packed& packed, std::int64_t rows, std::int64_t columns);
  static const Array& array_of(const Problem2d& problem, const Packed& packed) { return problem.arrays[packed.array]; }
  // each(packed, its array, [rows,] columns, where its copy lies)
  template <typename Each>
  void each_shared(const Run& run, Each&& each) const;
  template <typename Each>
  void each_by_rows(const Run& run, std::byte* copies, Each&& each) const;
  Indexing extents(const Packed& packed, std::int64_t columns) const;

  Program program_;
  const MoveTable* moves_;
  std::vector<Packed> packed_;
};

}  // namespace trireme::cpu
