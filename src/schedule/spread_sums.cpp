#include "schedule/spread_sums.hpp"

#include <algorithm>
#include <limits>

#include "ir/contract.hpp"
#include "schedule/spread_sum_kernels.hpp"

namespace trireme {
namespace {

constexpr std::int64_t line_bytes = 256;  // where an array of the workspace begins

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t chunks_of(std::int64_t count) { return ceil_div(contract::stripes(count), chunk_stripes); }

Walk walk_of(const Shares& shares) {
  if (std::max(shares.counts[0] * (shares.boundary > 0), std::max(shares.counts[1], shares.counts[2])) <= shares.run)
    return Walk::OneRun;
  return shares.run == 1 ? Walk::Strided : Walk::Runs;
}

}  // namespace

// What depends on the number of rows.
struct SpreadSum::Extents {
  Shares rows;
  std::array<std::int64_t, 3> row_blocks = {}, counts = {};             // rows a block, and blocks, by entry
  std::int64_t entries = 1;                                             // rows of entries
  std::int64_t blocks = 0;                                              // of an entry, at most
  std::int64_t sums_at = 0, chunks_at = 0, partials_at = 0, bytes = 0;  // of the workspace
};

SpreadSum::SpreadSum(const Indexing& indexing, std::int64_t columns, Type compute, Type stored,
                     const ArrayLayout& layout, const std::string& name)
    : indexing_(indexing),
      columns_(columns),
      wide_(indexing.column.extent(columns)),
      value_bytes_(static_cast<std::int64_t>(bytes(compute))),
      layout_(layout),
      along_(!indexing.column.present || !indexing.column.plain()),
      everything_(!indexing.row.present && !indexing.column.present) {
  Shares shares = shares_of(indexing.column, columns);
  chunks_ = 1;
  for (std::int64_t entry : {std::int64_t{0}, shares.boundary, wide_ - 1})
    chunks_ = std::max(chunks_, chunks_of(shares.count(std::min(entry, wide_ - 1))));
  if (along_) kernels_.push_back(lower_stripes(name + "_stripes", compute, walk_of(shares)));
  if (along_ && chunks_ > 1) kernels_.push_back(lower_pairs(name + "_chunks", compute, compute, false, {}));
  if (everything_) kernels_.push_back(lower_stripes(name + "_row", compute, Walk::OneRun));
  else kernels_.push_back(lower_blocks(name + "_blocks", compute));
  kernels_.push_back(lower_pairs(name + "_pairs", compute, stored, !everything_, layout));
}

SpreadSum::Extents SpreadSum::extents(std::int64_t rows) const {
  Extents all;
  auto place = [&](std::int64_t& at, std::int64_t values) {
    at = all.bytes;
    all.bytes += ceil_div(values * value_bytes_, line_bytes) * line_bytes;
  };
  if (along_) place(all.sums_at, rows * wide_);
  if (along_ && chunks_ > 1) place(all.chunks_at, rows * wide_ * chunks_);
  if (everything_) {
    all.blocks = chunks_of(rows);
    place(all.partials_at, all.blocks);
    return all;
  }
  all.rows = shares_of(indexing_.row, rows);
  all.entries = indexing_.row.extent(rows);
  const bool some[] = {all.rows.boundary > 0, all.rows.boundary < all.entries, all.rows.boundary + 1 < all.entries};
  for (std::size_t k = 0; k < 3; ++k) {
    all.row_blocks[k] = contract::row_block(all.rows.counts[k], all.entries * wide_);
    all.counts[k] = ceil_div(all.rows.counts[k], all.row_blocks[k]);
    if (some[k]) all.blocks = std::max(all.blocks, all.counts[k]);
  }
  place(all.partials_at, all.entries * all.blocks * wide_);
  return all;
}

std::int64_t SpreadSum::workspace_bytes(std::int64_t rows) const { return extents(rows).bytes; }

std::size_t SpreadSum::plan(std::int64_t rows, std::uint64_t terms, const Array& result, std::uint64_t workspace,
                            std::array<SumLaunch, 4>& launches) const {
  const Extents all = extents(rows);
  const Shares columns = shares_of(indexing_.column, columns_);
  std::size_t count = 0;
  auto launch = [&](std::int64_t units, std::uint64_t in, std::uint64_t out,
                    std::initializer_list<std::int64_t> numbers) {
    SumLaunch& each = launches[count];
    each.kernel = count++;
    each.units = units;
    std::size_t at = 0;
    each.args[at++] = in;
    each.args[at++] = out;
    for (std::int64_t number : numbers) each.args[at++] = static_cast<std::uint64_t>(number);
  };
  std::uint64_t values = terms;
  std::int64_t stride = columns_;
  if (along_) {
    std::uint64_t sums = workspace + static_cast<std::uint64_t>(all.sums_at);
    std::uint64_t chunks = chunks_ > 1 ? workspace + static_cast<std::uint64_t>(all.chunks_at) : sums;
    launch(rows * wide_ * chunks_, terms, chunks,
           {columns_, wide_, chunks_, columns.run, columns.period, columns.boundary, columns.counts[0],
            columns.counts[1], columns.counts[2]});
    if (chunks_ > 1)
      launch(rows * wide_, chunks, sums,
             {wide_, chunks_, columns.boundary, chunks_of(columns.counts[0]), chunks_of(columns.counts[1]),
              chunks_of(columns.counts[2]), wide_, 1});
    values = sums;
    stride = wide_;
  }
  std::uint64_t partials = workspace + static_cast<std::uint64_t>(all.partials_at);
  auto to = reinterpret_cast<std::uint64_t>(result.data);
  auto add_jumps = [&] {
    std::size_t at = 10;  // after what the kernel is always given
    auto add = [&](const Jumps& jumps, int compiled) {
      for (int k = 0; k < compiled; ++k) {  // code made for more jumps than the array has meets one that never comes
        Jump jump = k < jumps.size() ? jumps[k] : Jump{.every = std::numeric_limits<std::int64_t>::max()};
        launches[count - 1].args[at++] = static_cast<std::uint64_t>(jump.every);
        launches[count - 1].args[at++] = static_cast<std::uint64_t>(jump.elements);
      }
    };
    add(result.row_jumps, layout_.row_jumps);
    add(result.column_jumps, layout_.column_jumps);
    return count;
  };
  if (everything_) {
    std::int64_t most = std::max<std::int64_t>(all.blocks, 1);
    launch(all.blocks, values, partials, {rows, 1, most, std::max<std::int64_t>(rows, 1), 0, 1, rows, 0, 0});
    launch(1, partials, to, {1, most, 1, all.blocks, 0, 0, 0, 0});
    return add_jumps();
  }
  std::int64_t most = std::max<std::int64_t>(all.blocks, 1);
  launch(all.entries * all.blocks * wide_, values, partials,
         {stride, wide_, most, all.rows.run, all.rows.period - all.rows.run, all.rows.boundary, all.rows.counts[0],
          all.rows.counts[1], all.rows.counts[2], all.row_blocks[0], all.row_blocks[1], all.row_blocks[2]});
  launch(all.entries * wide_, partials, to,
         {wide_, most, all.rows.boundary, all.counts[0], all.counts[1], all.counts[2], result.row_stride,
          result.column_stride});
  return add_jumps();
}

}  // namespace trireme
