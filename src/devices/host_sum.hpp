// A column sum into a divided, wrapped or scalar result by the host: the contract's rule 5 over terms in memory.
#pragma once
#include "layout/array.hpp"
#include "layout/indexing.hpp"
#include "schedule/spread_sums.hpp"

namespace trireme {

// The rows that share a row of entries are a group; groups are shared out to workers. Over everything, the rows are.
template <typename T>
class HostSum {
 public:
  HostSum(const Indexing& where, std::int64_t rows, std::int64_t columns, int workers);

  std::int64_t scratch_bytes() const { return (shared_ + workers_ * own_) * static_cast<std::int64_t>(sizeof(T)); }
  int workers() const { return workers_; }

  // `terms`: the values of (i, j), without gaps. A worker does its part; then one call of finish(). Allocates nothing.
  void work(const T* terms, const Array& result, T* scratch, int worker) const;
  void finish(const Array& result, T* scratch) const;

 private:
  void sum_group(const T* terms, std::int64_t group, const Array& result, T* own) const;
  const T* along_the_row(const T* row, T* sums, T* rest) const;
  T row_sum(const T* values, std::int64_t count, T* stripes) const;

  std::int64_t rows_, columns_;
  Shares row_shares_, column_shares_;
  std::int64_t groups_, wide_, entries_;  // rows of entries, entries a row, all
  std::int64_t most_columns_;             // that share an entry
  bool along_, everything_;               // columns share entries; all share one
  int workers_;
  std::int64_t shared_ = 0, own_ = 0;  // values of scratch: of all workers, of each
};

}  // namespace trireme
