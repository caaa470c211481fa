// The numbers of the contract that a host needs; src/ir/contract.hpp says where they come from.

// How many rows are added one after the other in a column sum.
export const row_block = (rows, entries) => {
  const blocks = entries <= 8192 ? 2 ** (31 - Math.clz32(Math.min(8192, Math.floor(2 ** 20 / entries))))
                                 : Math.max(8, Math.min(120, Math.floor((15 * 2 ** 17) / entries)));
  return Math.max(1, Math.ceil(rows / blocks), Math.min(16, Math.ceil(rows / 128)));
};

const whole = (values) => Math.ceil(values / 64) * 64;  // of a row: lines
const pitch = (values) => (Math.ceil(values / 64) | 1) * 64;  // from one partial row to the next (devices/arguments.cpp)
const divisor = (a, b) => (b ? divisor(b, a % b) : a);  // the greatest of both
const multiple = (a, b, most) => Math.min((a / divisor(a, b)) * b, most);  // the least of both

// How a class of column sums is cut: `numbers` by the names that slots have for them (schedule/kernel.hpp), the workspace
// in `values`, the `entries` that columns() counts, and `between`: calls of rows() begin at multiples of it.
export const sum_blocks = ({ row, column, results }, rows, columns) => {
  if (!row && !column) {
    const stride = whole(rows);
    return { numbers: { rows }, stride, values: results * stride, entries: results, between: 1 };
  }
  const run = row ? row.divide : Math.max(rows, 1), period = run * (row?.wrap || 1), most = Math.max(rows, 1);
  const wide = column ? column.wrap || Math.ceil(columns / column.divide) : 1;
  const height = row ? row.wrap || Math.ceil(rows / row.divide) : 1;
  const full = row?.wrap ? Math.floor(rows / period) : 0, rest = rows - full * period;
  const boundary = row ? Math.floor(rest / run) : 1;
  // Of entries before the boundary, of the one there, of those behind it.
  const counts = row ? [full * run + run, full * run + (rest % run), full * run] : [rows, 0, 0];
  const some = [boundary > 0, boundary < height, boundary + 1 < height];
  const sizes = counts.map((count) => row_block(count, height * wide));
  const blocks = counts.map((count, kind) => (some[kind] ? Math.ceil(count / sizes[kind]) : 0));
  const most_blocks = Math.max(...blocks), stride = pitch(wide);
  let between = sizes[0];
  if (row?.wrap) {
    const rounds = sizes.reduce((all, size, kind) => (blocks[kind] ? multiple(all, size / divisor(size, run), most) : all), 1);
    between = period * rounds;
  } else if (row && height <= 1) {
    between = sizes[boundary > 0 ? 0 : 1];
  } else if (row && (run % sizes[0] || (blocks[1] > 1 && sizes[0] % sizes[1]))) {
    between = run;
  }
  const [row_block_0, row_block_1, row_block_2] = sizes, [blocks_0, blocks_1, blocks_2] = blocks;
  return {
    numbers: {
      row_block: row_block_0, row_block_1, row_block_2, blocks: blocks_0, blocks_1, blocks_2,
      largest_block: Math.max(...sizes), most_blocks: Math.max(most_blocks, 1), all_blocks: height * most_blocks,
      entries: height, boundary, rows,
    },
    stride, values: results * height * most_blocks * stride, entries: height * wide, between: Math.min(between, most),
  };
};

// The same of all classes of a program; `at`: where the partial sums of each begin.
export const sums_of = (classes, rows, columns) => {
  const cut = classes.map((each) => sum_blocks(each, rows, columns));
  let values = 0, between = 1, entries = 0;
  for (const each of cut) {
    each.at = values;
    values += each.values, entries += each.entries;
    between = multiple(between, each.between, Math.max(rows, 1));
  }
  return { cut, values, entries, between };
};
