#include "layout/buffers.hpp"

#include <algorithm>

namespace trireme {
namespace {

std::vector<Array> arrays_of(const std::vector<Buffer>& buffers) {
  std::vector<Array> arrays;
  for (const Buffer& buffer : buffers) arrays.push_back(buffer.array);
  return arrays;
}

}  // namespace

std::vector<Array> Buffers::operand_arrays() const { return arrays_of(operands); }
std::vector<Array> Buffers::result_arrays() const { return arrays_of(results); }

Buffer make_buffer(Type type, std::int64_t row_extent, std::int64_t column_extent, const Placement& placement) {
  Buffer buffer;
  buffer.row_extent = row_extent;
  buffer.column_extent = column_extent;
  std::int64_t stride = placement.row_stride.value_or(column_extent);
  std::int64_t reach = std::max<std::int64_t>(row_extent - 1, 0) * stride;  // from the first row to the last
  std::int64_t first = placement.offset + std::max<std::int64_t>(-reach, 0);
  std::int64_t used = row_extent == 0 || column_extent == 0 ? 0 : std::max<std::int64_t>(reach, 0) + column_extent;
  buffer.memory.resize(static_cast<std::size_t>(first + used) * bytes(type));
  buffer.array = {buffer.memory.data() + first * static_cast<std::int64_t>(bytes(type)), type, stride, 1};
  return buffer;
}

Result<Buffers> make_buffers(const Program& bound, std::int64_t rows, std::int64_t columns,
                             const std::map<std::string, Placement>& placements) {
  Buffers buffers;
  auto buffer_for = [&](const std::string& name, const Spread& spread, std::optional<Type> type) -> Result<Buffer> {
    if (!type) return Buffer{};
    TRIREME_TRY(index, indexing(bound, spread, columns));
    auto placement = placements.find(name);
    return make_buffer(*type, index.row.extent(rows), index.column.extent(columns),
                       placement == placements.end() ? Placement{} : placement->second);
  };
  for (const Operand& operand : bound.operands) {
    TRIREME_TRY(buffer, buffer_for(operand.name, operand.spread, operand.constant ? std::nullopt : operand.type));
    buffers.operands.push_back(std::move(buffer));
  }
  for (const Output& result : bound.results) {
    TRIREME_TRY(buffer, buffer_for(result.name, result.spread, result.type));
    buffers.results.push_back(std::move(buffer));
  }
  return buffers;
}

}  // namespace trireme
