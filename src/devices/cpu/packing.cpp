#include "devices/cpu/packing.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "support/processor.hpp"

namespace trireme::cpu {
namespace {

constexpr std::int64_t cache_bytes = std::int64_t{1} << 20;  // an array beyond it is prefetched
// A worker's copies. Few: while they are in the first cache and little beyond, streaming stores of the last call drain
// behind the loads of the next one (512x32x128, columns backwards: softmax backward 3.4, with four times as many 4.6).
constexpr std::int64_t few_bytes = std::int64_t{1} << 16;   // where rows are short
constexpr std::int64_t many_bytes = std::int64_t{1} << 23;  // where a line of every column takes less
constexpr std::int64_t most_bytes = std::int64_t{1} << 26;  // beyond, lines are cut
constexpr std::int64_t own_bytes = std::int64_t{1} << 22;   // beyond, workers have none of their own
// From a worker's copies to the next one's. What lies closer is slow to store to while the other one runs, probably
// since processors fetch beyond what they read (softmax backward 32x64x128 f32 with its operands transposed, two
// threads: 81 us, at 16 KiB 72, at 64 KiB 62, at 256 KiB 60).
constexpr std::int64_t distance_bytes = std::int64_t{1} << 16;
// In the third cache: what a call reads, copies and writes in the first one, if it is some rows. Results between
// others' elements must come before they are written, and do so best a little at a time between a little that is read
// (512x32x128 f32, every second column, AVX2: rms_norm 2.4 -> 1.8 ms, softmax backward 3.2 -> 2.5; between 20 and
// 50 KiB it is up to 4.1). From memory it is the other way round (2048x32x128, softmax backward bf16: 8.0 -> 10.2).
constexpr std::int64_t first_cache_bytes = 20 << 10;
constexpr std::int64_t third_cache_bytes = 96 << 20;  // of lines and copies
constexpr std::int64_t some_rows = 4;
constexpr std::int64_t lines_at_once = 4;  // of every column: with fewer, pages cost more than lines

std::int64_t down(std::int64_t row, std::int64_t together) { return row / together * together; }
std::int64_t up(std::int64_t row, std::int64_t together) { return down(row + together - 1, together); }

bool cut_lines(const Blocks& blocks, std::int64_t together) {
  return blocks.row_block % together && together % blocks.row_block;
}
// Rows whose lines a call of `step` rows may have entries in.
std::int64_t rows_held(const Blocks& blocks, std::int64_t step, std::int64_t together) {
  return step % together != 0 || cut_lines(blocks, together) ? step + 2 * (together - 1) : step;
}

// Bytes of the lines that a row's entries lie in.
std::int64_t lines_of(const Array& row, std::int64_t entries) {
  return entries * std::min(line_bytes, std::abs(row.column_stride) * static_cast<std::int64_t>(bytes(row.type)));
}

// A share of an array's columns. Their copies begin at whole lines, so that no two write one; where columns have jumps
// the first has them all.
struct Columns {
  Array array;
  std::int64_t bytes, count;  // from the first one's copy; columns
};
Columns columns_of(const Share& share, const Array& array, std::int64_t columns) {
  const bool whole = array.column_jumps.size() > 0;
  auto cut = [&](std::int64_t part) {
    if (part == share.of || (whole && part > 0)) return columns;
    return columns * part / share.of / line_bytes * line_bytes;
  };
  const std::int64_t from = cut(share.part), size = static_cast<std::int64_t>(bytes(array.type));
  Array own = array;
  own.data = static_cast<std::byte*>(array.data) + from * array.column_stride * size;
  return {own, from * size, cut(share.part + 1) - from};
}

// Which rows of a table are read is known in the kernel only: it reads them where they lie.
bool is_packed(const Spread& spread, const ArrayLayout& layout) { return layout.strided && !spread.row.picked(); }

// Rows whose copies a worker has for a call: from the first one's line to the last one's.
struct Held {
  std::int64_t low, high;
};
Held held(const Packing::Run& run, const Packing::Worker& worker, std::int64_t first, std::int64_t last) {
  return {std::max(worker.from, down(first, run.window.together)), std::min(worker.to, up(last, run.window.together))};
}

}  // namespace

Layout Packing::remains(const Program& program, const Layout& layout) {
  Layout rest = layout;
  for (std::size_t k = 0; k < rest.arrays.size(); ++k)
    if (is_packed(program.array(k).spread, rest.arrays[k])) rest.arrays[k] = {};
  return rest;
}

Packing::Packing(const Program& program, const Layout& layout, const Kernels& compiled, const MoveTable& moves)
    : program_(program), moves_(&moves) {
  for (std::size_t k = 0; k < program.array_count(); ++k) {
    const Program::Array what = program.array(k);
    if (!is_packed(what.spread, layout.array(k))) continue;
    const int array = static_cast<int>(k);
    Packed packed{.name = what.name,
                  .result = what.result,
                  .by_rows = what.spread.row.present && what.spread.row.plain(),
                  .read = !what.result || program.results[k - program.operands.size()].accumulate,
                  .array = k,
                  .type = *what.type,
                  .spread = what.spread,
                  .pointer_slot = compiled.rows.slot({Slot::What::Pointer, array}),
                  .stride_slot = compiled.rows.slot({Slot::What::Stride, array})};
    if (packed.pointer_slot >= 0) packed_.push_back(std::move(packed));  // else nothing reads it
  }
}

std::string Packing::names() const {
  std::string names;
  for (const Packed& each : packed_) names += (names.empty() ? "" : ", ") + each.name;
  return names;
}

std::int64_t Packing::Packed::row_bytes(std::int64_t columns) const {
  // An odd number of lines: a power of two would put all rows of a block into the same few places of a cache.
  std::int64_t lines = whole_lines(columns * static_cast<std::int64_t>(bytes(type))) / line_bytes;
  return (lines | 1) * line_bytes;
}

bool Packing::beyond_cache(const Packed& packed, std::int64_t rows, std::int64_t columns) {
  return rows * columns * static_cast<std::int64_t>(bytes(packed.type)) > cache_bytes;
}

// Divisors are folded into the program, so this cannot fail once it has been compiled.
Indexing Packing::extents(const Packed& packed, std::int64_t columns) const {
  if (packed.spread.plain()) return {{packed.spread.row.present}, {packed.spread.column.present}};
  Result<Indexing> where = indexing(program_, packed.spread, columns);
  return where ? *where : Indexing{};
}

Packing::Window Packing::window(const Blocks& blocks, std::int64_t rows, std::int64_t columns, std::int64_t chunk_rows,
                                const Problem2d* problem) const {
  std::int64_t row = 0, touched = 0, together = 1;  // bytes of all copies of a row; with the lines that they are of
  bool all_beyond_cache = true;
  for (const Packed& each : packed_) {
    if (!each.by_rows) continue;
    std::int64_t entries = extents(each, columns).column.extent(columns);
    row += each.row_bytes(entries);
    touched += each.row_bytes(entries) + (problem ? lines_of(array_of(*problem, each), entries) : 0);
    all_beyond_cache = all_beyond_cache && beyond_cache(each, rows, entries);
    if (!problem || rows_lie_closer(array_of(*problem, each), rows, entries))
      together = std::max(together, line_bytes / static_cast<std::int64_t>(bytes(each.type)));
  }
  const std::int64_t chunk = rows_of_a_call(blocks, chunk_rows);
  if (row == 0 || rows == 0) return {chunk, 1, 0};
  auto step_of = [&](std::int64_t wanted) {
    return std::min(chunk, rows_of_a_call(blocks, std::clamp<std::int64_t>(wanted, 1, rows)));
  };
  const std::int64_t line = together > 1 ? together : 0;
  std::int64_t wanted = std::max(few_bytes / row, lines_at_once * line);
  if (wanted * row > many_bytes) wanted = std::max(many_bytes / row, line);
  if (problem && wanted > together) wanted = down(wanted, together);
  // Row blocks that cut lines: the fewer rows a call has, the fewer lines' rows must stay between calls, which is what
  // counts where rows are long (rms_norm backward 128x65536 f32, one thread: 15 ms instead of 17.7).
  if (problem && cut_lines(blocks, together) && wanted * row >= many_bytes)
    wanted = std::max(together / 3 / blocks.row_block, std::int64_t{1}) * blocks.row_block;
  const std::int64_t few_rows = first_cache_bytes / touched;
  const bool in_third_cache = all_beyond_cache && rows * touched <= third_cache_bytes;
  if (problem && in_third_cache && line == 0 && few_rows >= some_rows && step_of(few_rows) <= few_rows)
    wanted = few_rows;
  std::int64_t step = step_of(wanted);
  std::int64_t held = std::min(rows, rows_held(blocks, step, together));
  if (held * row > most_bytes) {
    together = 1;
    step = step_of(most_bytes / row);
    held = std::min(rows, std::max(step, most_bytes / row));
  }
  return {step, together, held};
}

std::int64_t Packing::worker_bytes(std::int64_t held, std::int64_t columns) const {
  std::int64_t bytes = 0;
  for (const Packed& each : packed_)
    if (each.by_rows) bytes += held * each.row_bytes(extents(each, columns).column.extent(columns));
  return bytes ? bytes + distance_bytes : 0;
}

std::int64_t Packing::shared_bytes(std::int64_t rows, std::int64_t columns) const {
  std::int64_t bytes = 0;
  for (const Packed& each : packed_) {
    Indexing where = extents(each, columns);
    if (!each.by_rows) bytes += where.row.extent(rows) * each.row_bytes(where.column.extent(columns));
  }
  return bytes;
}

template <typename Each>
void Packing::each_shared(const Run& run, Each&& each) const {
  std::byte* at = run.shared;
  for (const Packed& packed : packed_) {
    if (packed.by_rows) continue;
    Indexing where = extents(packed, run.problem.columns);
    std::int64_t rows = where.row.extent(run.problem.rows), columns = where.column.extent(run.problem.columns);
    each(packed, array_of(run.problem, packed), rows, columns, at);
    at += rows * packed.row_bytes(columns);
  }
}

template <typename Each>
void Packing::each_by_rows(const Run& run, std::byte* at, Each&& each) const {
  for (const Packed& packed : packed_) {
    if (!packed.by_rows) continue;
    std::int64_t columns = extents(packed, run.problem.columns).column.extent(run.problem.columns);
    each(packed, array_of(run.problem, packed), columns, at);
    at += run.window.held * packed.row_bytes(columns);
  }
}

void Packing::begin(const Run& run) const {
  each_shared(
      run, [&](const Packed& packed, const Array& array, std::int64_t rows, std::int64_t columns, std::byte* at) {
        if (packed.read)
          pack(*moves_, array, {at, packed.row_bytes(columns), 0, rows, columns, beyond_cache(packed, rows, columns)});
      });
}

void Packing::finish(const Run& run) const {
  each_shared(run,
              [&](const Packed& packed, const Array& array, std::int64_t rows, std::int64_t columns, std::byte* at) {
                if (packed.result)
                  unpack(*moves_, array,
                         {at, packed.row_bytes(columns), 0, rows, columns, beyond_cache(packed, rows, columns)}, false);
              });
}

void Packing::point(const Run& run, std::uint64_t* args) const {
  auto stride = [&](const Packed& packed, std::int64_t columns) {
    std::int64_t elements = packed.row_bytes(columns) / static_cast<std::int64_t>(bytes(packed.type));
    if (packed.stride_slot >= 0) args[packed.stride_slot] = static_cast<std::uint64_t>(elements);
  };
  each_shared(run, [&](const Packed& packed, const Array&, std::int64_t, std::int64_t columns, std::byte* at) {
    args[packed.pointer_slot] = reinterpret_cast<std::uint64_t>(at);
    stride(packed, columns);
  });
  each_by_rows(run, nullptr,
               [&](const Packed& packed, const Array&, std::int64_t columns, std::byte*) { stride(packed, columns); });
}

// Kernels count rows from the first of all: the copies' addresses are as many rows before them.
void Packing::begin_rows(const Run& run, const Worker& worker, std::int64_t first, std::int64_t last,
                         std::uint64_t* args, Share share) const {
  const Held here = held(run, worker, first, last);
  const std::int64_t next = first == worker.from ? first : held(run, worker, first, first).high;  // not here yet
  each_by_rows(run, worker.copies, [&](const Packed& packed, const Array& array, std::int64_t columns, std::byte* at) {
    const std::int64_t row_bytes = packed.row_bytes(columns);
    args[packed.pointer_slot] = reinterpret_cast<std::uint64_t>(at) - static_cast<std::uint64_t>(here.low * row_bytes);
    if (!packed.result && next < here.high) {
      const Columns own = columns_of(share, array, columns);
      pack(*moves_, own.array,
           {at + (next - here.low) * row_bytes + own.bytes, row_bytes, next, here.high, own.count,
            beyond_cache(packed, run.problem.rows, columns)});
    }
  });
}

void Packing::finish_rows(const Run& run, const Worker& worker, std::int64_t first, std::int64_t last,
                          Share share) const {
  const std::int64_t low = held(run, worker, first, last).low;
  const std::int64_t stay = last < worker.to ? held(run, worker, last, last).low : last;
  each_by_rows(run, worker.copies, [&](const Packed& packed, const Array& array, std::int64_t columns, std::byte* at) {
    if (!packed.result || low >= stay) return;
    const Columns own = columns_of(share, array, columns);
    unpack(*moves_, own.array,
           {at + own.bytes, packed.row_bytes(columns), low, stay, own.count,
            beyond_cache(packed, run.problem.rows, columns)},
           run.streaming);
  });
  // Once, since it waits until all is in memory; but a share's next rows may be another thread's.
  if (run.streaming && (last == worker.to || share.of > 1)) fence_streaming_stores();
}

void Packing::advance(const Run& run, const Worker& worker, std::int64_t first, std::int64_t last) const {
  const std::int64_t low = held(run, worker, first, last).low;
  const Held after = last < worker.to ? held(run, worker, last, last) : Held{last, last};
  const std::int64_t stay = after.low;
  each_by_rows(run, worker.copies, [&](const Packed& packed, const Array&, std::int64_t columns, std::byte* at) {
    const std::int64_t row_bytes = packed.row_bytes(columns);
    const std::int64_t from = packed.result ? stay : last, to = packed.result ? last : after.high;
    if (low < stay && from < to)
      std::memmove(at + (from - stay) * row_bytes, at + (from - low) * row_bytes,
                   static_cast<std::size_t>((to - from) * row_bytes));
  });
}

std::optional<Packing::Window> Packing::window_of_all(const Window& own, const Blocks& blocks, const Problem2d& problem,
                                                      std::int64_t workers) const {
  if (workers < 2 || worker_bytes(own.held, problem.columns) <= own_bytes) return std::nullopt;
  const std::int64_t unit = blocks.row_block * workers;  // rows that all have a block of
  const std::int64_t wanted = cut_lines(blocks, own.together) ? own.together / 3 : own.together;
  const std::int64_t step = std::max(wanted / unit, std::int64_t{1}) * unit;
  const Window all{step, own.together, std::min(problem.rows, rows_held(blocks, step, own.together))};
  const Window any = window(blocks, problem.rows, problem.columns, 0);  // what there is room for
  if (worker_bytes(all.held, problem.columns) > workers * worker_bytes(any.held, problem.columns)) return std::nullopt;
  return all;
}

}  // namespace trireme::cpu
