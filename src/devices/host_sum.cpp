#include "devices/host_sum.hpp"

#include <algorithm>
#include <type_traits>

#include "ir/contract.hpp"
#include "reference/row_sum.hpp"
#include "support/float_types.hpp"
#include "support/mxcsr.hpp"

namespace trireme {
namespace {

std::int64_t most(const Shares& shares) {
  return std::max({shares.boundary > 0 ? shares.counts[0] : 0, shares.counts[1], shares.counts[2]});
}

template <typename T>
void add(T* into, const T* a, const T* b, std::int64_t count) {
  for (std::int64_t c = 0; c < count; ++c) into[c] = a[c] + b[c];
}

// `count` rows of `wide` values: in neighbouring pairs, level by level, into the first.
template <typename T>
void sum_pairs(T* rows, std::int64_t count, std::int64_t wide) {
  for (; count > 1; count = (count + 1) / 2) {
    for (std::int64_t k = 0; k < count / 2; ++k)
      add(rows + k * wide, rows + 2 * k * wide, rows + (2 * k + 1) * wide, wide);
    if (count % 2 == 1) std::copy_n(rows + (count - 1) * wide, wide, rows + count / 2 * wide);
  }
}

template <typename T>
void store(const Array& result, std::int64_t r, std::int64_t c, T value) {
  if constexpr (std::is_same_v<T, float>) store_f32(result.type, result.entry(r, c), value);
  else store_f64(result.type, result.entry(r, c), value);
}

}  // namespace

template <typename T>
HostSum<T>::HostSum(const Indexing& where, std::int64_t rows, std::int64_t columns, int workers)
    : rows_(rows),
      columns_(columns),
      row_shares_(shares_of(where.row, rows)),
      column_shares_(shares_of(where.column, columns)),
      groups_(where.row.extent(rows)),
      wide_(where.column.extent(columns)),
      entries_(where.entries(rows, columns)),
      most_columns_(most(column_shares_)),
      along_(!where.column.present || !where.column.plain()),
      everything_(!where.row.present && !where.column.present),
      workers_(static_cast<int>(std::clamp<std::int64_t>(everything_ ? rows : groups_, 1, workers))) {
  if (along_) own_ = wide_ + most_columns_ + contract::stripes(most_columns_);
  if (everything_) {
    shared_ = rows + contract::stripes(rows);
    return;
  }
  std::int64_t blocks = 0;
  for (std::size_t k = row_shares_.boundary > 0 ? 0 : 1; k < row_shares_.counts.size(); ++k)
    blocks = std::max(blocks, contract::row_blocks(row_shares_.counts[k], entries_));
  own_ += blocks * wide_;
}

template <typename T>
void HostSum<T>::work(const T* terms, const Array& result, T* scratch, int worker) const {
  ContractArithmetic arithmetic;
  T* own = scratch + shared_ + worker * own_;
  std::int64_t count = everything_ ? rows_ : groups_;
  for (std::int64_t k = count * worker / workers_; k < count * (worker + 1) / workers_; ++k) {
    if (everything_) scratch[k] = *along_the_row(terms + k * columns_, own, own + wide_);
    else sum_group(terms, k, result, own);
  }
}

template <typename T>
void HostSum<T>::finish(const Array& result, T* scratch) const {
  ContractArithmetic arithmetic;
  if (everything_) store(result, 0, 0, row_sum(scratch, rows_, scratch + rows_));
}

template <typename T>
void HostSum<T>::sum_group(const T* terms, std::int64_t group, const Array& result, T* own) const {
  std::int64_t count = row_shares_.count(group), block = contract::row_block(count, entries_);
  T *sums = own, *rest = along_ ? own + wide_ : own;
  T* blocks = along_ ? rest + most_columns_ + contract::stripes(most_columns_) : own;
  for (std::int64_t k = 0; k < count; ++k) {
    const T* row = along_the_row(terms + row_shares_.index(group, k) * columns_, sums, rest);
    T* into = blocks + k / block * wide_;
    if (k % block == 0) std::copy_n(row, wide_, into);
    else add(into, into, row, wide_);
  }
  sum_pairs(blocks, contract::row_blocks(count, entries_), wide_);
  for (std::int64_t c = 0; c < wide_; ++c) store(result, group, c, count == 0 ? T(0.0) : blocks[c]);
}

// The row's values by entry: itself, or in `sums` what the columns that share an entry add up to.
template <typename T>
const T* HostSum<T>::along_the_row(const T* row, T* sums, T* rest) const {
  if (!along_) return row;
  for (std::int64_t c = 0; c < wide_; ++c) {
    std::int64_t count = column_shares_.count(c);
    const T* values = row + column_shares_.index(c, 0);
    if (count > column_shares_.run) {  // not side by side
      for (std::int64_t k = 0; k < count; ++k) rest[k] = row[column_shares_.index(c, k)];
      values = rest;
    }
    sums[c] = row_sum(values, count, rest + most_columns_);
  }
  return sums;
}

template <typename T>
T HostSum<T>::row_sum(const T* values, std::int64_t count, T* stripes) const {
  if (count == 0) return T(0.0);
  for (std::int64_t at = 0, s = 0; at < count; at += contract::stripe, ++s)
    stripes[s] = stripe_sum(std::span(values + at, std::min<std::size_t>(contract::stripe, count - at)));
  sum_pairs(stripes, contract::stripes(count), 1);
  return stripes[0];
}

template class HostSum<float>;
template class HostSum<double>;

}  // namespace trireme
