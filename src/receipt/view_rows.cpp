#include "receipt/view_rows.hpp"

#include <cstring>

#include "layout/array.hpp"
#include "layout/elements.hpp"
#include "layout/flatten.hpp"

namespace trireme::receipts {
namespace {

Error unfit(const std::string& what) { return {Code::InvalidArgument, what}; }

// Axes in bytes, innermost last; `run` bytes lie side by side below them.
struct Walk {
  const std::byte* data = nullptr;
  std::vector<std::int64_t> extents, strides;
  std::int64_t run = 0;
  std::int64_t rows = 1, columns = 1;  // of all entries

  // `out.size()` bytes from byte `at` on, in row-major order.
  void copy(std::int64_t at, std::span<std::byte> out) const {
    while (!out.empty()) {
      const std::byte* from = data + at % run;
      std::int64_t rest = at / run;
      for (std::size_t k = extents.size(); k-- > 0; rest /= extents[k]) from += rest % extents[k] * strides[k];
      const auto count = std::min(static_cast<std::size_t>(run - at % run), out.size());
      std::memcpy(out.data(), from, count);
      out = out.subspan(count);
      at += static_cast<std::int64_t>(count);
    }
  }
};

Result<Walk> walk_of(const View& view, int axes) {
  if (!exists(view.type)) return unfit("an array of no storage type");
  const std::size_t rank = view.shape.size();
  if (rank > max_rank) return unfit("an array has at most 8 axes");
  if (axes < 0) return unfit("a row has no fewer axes than none");
  const Dims strides = view.strides.empty() ? contiguous_strides(view.shape) : view.strides;
  if (strides.size() != rank)
    return unfit("the strides " + print_strides(strides) + " are not those of the shape " + print(view.shape));
  const bool packed = is_packed(view.type);  // two entries of the last axis a byte
  const auto size = static_cast<std::int64_t>(bytes(view.type));
  Walk walk{.data = static_cast<const std::byte*>(view.data.get()), .run = size};
  std::int64_t low = 0, high = size, entries = 1;
  for (std::size_t k = 0; k < rank; ++k) {
    const bool last = k + 1 == rank;
    std::int64_t extent = view.shape[k], stride = strides[k];
    if (extent < 0) return unfit("the shape " + print(view.shape) + " has a negative extent");
    std::int64_t& side = static_cast<std::int64_t>(rank - k) > axes ? walk.rows : walk.columns;
    if (__builtin_mul_overflow(side, extent, &side) || __builtin_mul_overflow(entries, extent, &entries) ||
        entries > (std::int64_t{1} << 56))
      return unfit("an array of more than 2^56 entries");
    if (packed) {
      if (last ? extent % 2 != 0 || (stride != 1 && extent > 2) : stride % 2 != 0 && extent > 1)
        return unfit("f4e2m1 takes two columns a byte: they lie side by side, and rows begin with a byte");
      if (last) extent /= 2, stride = 1;
      else stride /= 2;
    }
    if (extent == 1) continue;
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(stride, size, &stride) || __builtin_mul_overflow(stride, extent - 1, &reach) ||
        __builtin_add_overflow(reach > 0 ? high : low, reach, reach > 0 ? &high : &low))
      return unfit("the strides reach beyond 2^63 bytes");
    walk.extents.push_back(extent);
    walk.strides.push_back(stride);
  }
  if (packed && rank == 0) return unfit("f4e2m1 takes two columns a byte, and there is one");
  if (entries > 0) {
    if (!walk.data) return unfit("an array without memory");
    if (view.bytes != unknown_bytes && static_cast<std::uint64_t>(high) > view.bytes) {
      Error error{Code::BufferTooSmall,
                  std::to_string(high) + " bytes are needed, and the buffer has " + std::to_string(view.bytes)};
      error.needed = high, error.got = static_cast<std::int64_t>(view.bytes);
      return error;
    }
  }
  while (!walk.extents.empty() && walk.strides.back() == walk.run) {
    walk.run *= walk.extents.back();
    walk.extents.pop_back(), walk.strides.pop_back();
  }
  return walk;
}

ReadRows reader(Walk walk, std::int64_t row_bytes) {
  return [walk = std::move(walk), row_bytes](std::int64_t first, std::span<std::byte> rows) -> Status {
    if (!rows.empty()) walk.copy(first * row_bytes, rows);
    return Done{};
  };
}

}  // namespace

Result<ViewRows> rows_of(const View& view, int axes) {
  TRIREME_TRY(walk, walk_of(view, axes));
  return ViewRows{view.type, walk.rows, walk.columns, reader(walk, walk.columns * bits(view.type) / 8)};
}

Result<ReadRows> reader_of(const View& view, const ArrayDigests& array) {
  const Result<Walk> walk = walk_of(view, max_rank);  // all entries as one row
  if (!walk) return Error{walk.error().code, array.name + ": " + walk.error().message};
  if (view.type != array.type)
    return unfit(array.name + " holds " + std::string(name(view.type)) + ", and the receipt says " +
                 std::string(name(array.type)));
  if (walk->columns != array.rows * array.columns)
    return unfit(array.name + " has the shape " + print(view.shape) + ", and the receipt says " +
                 std::to_string(array.rows) + " rows of " + std::to_string(array.columns));
  return reader(*walk, array.row_bytes());
}

}  // namespace trireme::receipts
