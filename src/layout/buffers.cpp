#include "layout/buffers.hpp"

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

Buffer make_buffer(Type type, std::int64_t row_extent, std::int64_t column_extent) {
  Buffer buffer;
  buffer.row_extent = row_extent;
  buffer.column_extent = column_extent;
  buffer.memory.resize(static_cast<std::size_t>(row_extent * column_extent) * bytes(type));
  buffer.array = {buffer.memory.data(), type, column_extent, 1};
  return buffer;
}

Result<Buffers> make_buffers(const Program& bound, std::int64_t rows, std::int64_t columns) {
  Buffers buffers;
  auto buffer_for = [&](const Spread& spread, std::optional<Type> type) -> Result<Buffer> {
    if (!type) return Buffer{};
    TRIREME_TRY(index, indexing(bound, spread, columns));
    return make_buffer(*type, index.row.extent(rows), index.column.extent(columns));
  };
  for (const Operand& operand : bound.operands) {
    TRIREME_TRY(buffer, buffer_for(operand.spread, operand.constant ? std::nullopt : operand.type));
    buffers.operands.push_back(std::move(buffer));
  }
  for (const Output& result : bound.results) {
    TRIREME_TRY(buffer, buffer_for(result.spread, result.type));
    buffers.results.push_back(std::move(buffer));
  }
  return buffers;
}

}  // namespace trireme
