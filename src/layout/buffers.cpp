#include "layout/buffers.hpp"

#include "layout/elements.hpp"
#include "layout/overlap.hpp"

namespace trireme {

Extent Buffer::extent_in_bytes() const {
  return {in_bytes(array), row_extent, columns_in_bytes(array.type, column_extent)};
}

std::vector<Array> Buffers::arrays() const {
  std::vector<Array> arrays;
  for (const auto* list : {&operands, &results})
    for (const Buffer& buffer : *list) arrays.push_back(in_bytes(buffer.array));
  return arrays;
}

Result<Dims> strides_of(const Placement& placement, const ArrayAxes& axes) {
  const Dims all = axes.all(), &said = placement.strides;
  std::size_t outer = axes.rows.size();
  if (said.size() == all.size()) return said;
  Dims strides = contiguous_strides(all);
  if (said.empty()) return strides;
  bool rows_as_one = said.size() == 1 && outer > 1;
  if (!rows_as_one && (said.size() != outer || outer == 0)) {
    std::string accepted = "one for each of its " + std::to_string(all.size()) + " axes";
    if (outer > 0 && outer < all.size()) accepted += ", or for the outer " + std::to_string(outer);
    if (outer > 1) accepted += ", or one for its rows";
    if (all.empty()) accepted = "none";
    return Error{Code::InvalidArgument, std::to_string(said.size()) + " strides for an array of the shape " +
                                            print(all) + "; it takes " + accepted};
  }
  Dims rows = contiguous_strides(axes.rows);
  for (std::size_t k = 0; k < outer; ++k) strides[k] = rows_as_one ? rows[k] * said[0] : said[k];
  return strides;
}

Result<Buffer> make_buffer(Type type, const Indexing& indexing, const ArrayAxes& axes, const Placement& placement,
                           Backing backing) {
  auto product = [](const Dims& dims) {
    std::int64_t entries = 1;
    for (std::int64_t extent : dims) entries *= extent;
    return entries;
  };
  TRIREME_TRY(strides, strides_of(placement, axes));
  Buffer buffer;
  buffer.row_extent = product(axes.rows);
  buffer.column_extent = product(axes.columns);
  buffer.array = placed(type, indexing, axes, strides);
  if (const auto why = why_not_in_bytes(buffer.array, buffer.row_extent, buffer.column_extent))
    return Error{Code::InvalidArgument, std::string(*why)};
  if (is_packed(type) && !axes.columns.empty() && axes.columns[axes.columns.size() - 1] % 2)
    return Error{Code::InvalidArgument, std::string(odd_last_axis)};
  if (is_packed(type) && placement.offset % 2)
    return Error{Code::InvalidArgument, "f4e2m1 takes two columns a byte, and the offset is odd"};
  std::optional<ByteRange> range = checked_byte_range(buffer.extent_in_bytes());
  if (!range) return Error{Code::InvalidArgument, "the strides " + print_strides(strides) + " reach beyond 2^61 bytes"};
  std::int64_t first = placement.offset * bits(type) / 8 - range->low;
  const std::int64_t size = first + range->high;  // may be more than a 32-bit host's memory, where none is made
  auto* memory =
      reinterpret_cast<std::byte*>(size > 0 ? static_cast<std::uintptr_t>(CacheLineAllocator<int>::line) : 0);
  if (backing == Backing::Memory) {
    buffer.memory.resize(static_cast<std::size_t>(size));
    memory = buffer.memory.data();
  }
  buffer.array.data = memory + first;
  return buffer;
}

Result<Buffers> make_buffers(const Program& bound, const Dims& shape, int normalised,
                             const std::map<std::string, Placement>& placements, Backing backing) {
  Buffers buffers;
  std::int64_t columns = 1;
  for (std::size_t k = shape.size() - static_cast<std::size_t>(normalised); k < shape.size(); ++k) columns *= shape[k];
  auto buffer_for = [&](const std::string& name, const Spread& spread, std::optional<Type> type) -> Result<Buffer> {
    if (!type) return Buffer{};
    TRIREME_TRY(index, indexing(bound, spread, columns));
    auto found = placements.find(name);
    const Placement placement = found == placements.end() ? Placement{} : found->second;
    if (placement.rows >= 0 && !index.row.picked)
      return Error{Code::InvalidArgument, "'" + name + "': no operand picks its rows, which are as many as there are"};
    const ArrayAxes axes = axes_of(index, shape, normalised, placement.rows);
    if (index.row.picked && axes.rows[0] < 1)
      return Error{Code::InvalidArgument, "'" + name + "': a table has at least one row to pick"};
    Result<Buffer> made = make_buffer(*type, index, axes, placement, backing);
    if (!made) return Error{made.error().code, "'" + name + "': " + made.error().message};
    return made;
  };
  for (const Operand& operand : bound.operands) {
    TRIREME_TRY(buffer, buffer_for(operand.name, operand.spread, operand.constant ? std::nullopt : operand.type));
    buffers.operands.push_back(std::move(buffer));
  }
  for (const Output& result : bound.results) {
    TRIREME_TRY(buffer, buffer_for(result.name, result.spread, result.type));
    if (overlaps_itself(buffer.extent_in_bytes()))
      return Error{Code::InvalidArgument,
                   "'" + result.name + "': entries of a result share memory; a result has a place for each of them"};
    buffers.results.push_back(std::move(buffer));
  }
  return buffers;
}

}  // namespace trireme
