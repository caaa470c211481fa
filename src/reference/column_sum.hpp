// The contract's column sum (DESIGN §2.5) and column maximum, literally, fed a row at a time.
#pragma once
#include <limits>
#include <span>
#include <vector>

#include "ir/contract.hpp"
#include "ir/primitives.hpp"
#include "layout/indexing.hpp"
#include "reference/group.hpp"
#include "reference/row_sum.hpp"

namespace trireme {

// The entries of one result. Inside a row, the columns that share an entry are, in order of j, a row of their own,
// summed by the rule of rows. Then the rows that share an entry are, in order of i, a matrix of their own, cut into
// blocks: a block starts from its first row and adds in order, the blocks' sums go in neighbouring pairs. The one entry
// of a result [] is the sum of all row sums, taken as one row. An entry on which nothing lands is +0.0. A maximum takes
// the larger value where a sum adds, and is -inf where nothing lands.
// `row_block`: rows of a block in place of the contract's, where these are a part of other rows.
template <typename T>
class ColumnSum {
 public:
  ColumnSum(Op op, const Indexing& indexing, std::int64_t rows, std::int64_t columns, std::int64_t row_block = 0)
      : op_(row_reduction_of(op)),
        indexing_(indexing),
        entries_a_row_(indexing.column.extent(columns)),
        groups_(indexing.row.extent(rows)),
        over_everything_(!indexing.row.present && !indexing.column.present) {
    std::vector<std::int64_t> rows_of(groups_.size());
    for (std::int64_t i = 0; i < rows; ++i) ++rows_of[indexing.row.entry(i)];
    for (std::size_t r = 0; r < groups_.size(); ++r)
      groups_[r].block = row_block ? row_block : contract::row_block(rows_of[r], indexing.entries(rows, columns));
  }

  // `row`: the values of row i, one per column. Rows come in order.
  void add_row(std::int64_t i, std::span<const T> row) {
    Values values = along_the_row(row);
    if (over_everything_) {
      row_sums_.push_back(values[0]);
      return;
    }
    Group& group = groups_[indexing_.row.entry(i)];
    if (group.rows++ % group.block == 0) group.blocks.push_back(std::move(values));
    else combine(group.blocks.back(), values);
  }

  T combined(const T& a, const T& b) const { return op_ == Op::Sum ? a + b : larger(a, b); }

  // All entries, row-major.
  std::vector<T> entries() const {
    if (over_everything_) return {of_row(row_sums_)};
    auto in_place = [this](Values& into, const Values& from) { combine(into, from); };
    Values all;
    for (const Group& group : groups_) {
      Values sum =
          group.blocks.empty() ? Values(entries_a_row_, of_row({})) : sum_neighbouring_pairs(group.blocks, in_place);
      all.insert(all.end(), sum.begin(), sum.end());
    }
    return all;
  }

 private:
  using Values = std::vector<T>;
  struct Group {  // the rows that share a row of entries
    std::int64_t block = 1, rows = 0;
    std::vector<Values> blocks;
  };

  void combine(Values& into, const Values& from) const {
    for (std::size_t c = 0; c < into.size(); ++c) into[c] = combined(into[c], from[c]);
  }

  T of_row(const Values& row) const {
    if (row.empty() && op_ != Op::Sum) return T(-std::numeric_limits<double>::infinity());
    return reduced(op_, row);
  }

  Values along_the_row(std::span<const T> row) const {
    if (indexing_.column.present && indexing_.column.plain()) return {row.begin(), row.end()};
    std::vector<Values> sharing(entries_a_row_);
    for (std::size_t j = 0; j < row.size(); ++j) sharing[indexing_.column.entry(j)].push_back(row[j]);
    Values sums;
    for (const Values& columns : sharing) sums.push_back(of_row(columns));
    return sums;
  }

  Op op_;  // of a row
  Indexing indexing_;
  std::size_t entries_a_row_;
  std::vector<Group> groups_;
  bool over_everything_;
  Values row_sums_;
};

}  // namespace trireme
