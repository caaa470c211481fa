// Memory of its own for every operand and result of a bound program, contiguous and row-major: what checks and samples
// work on.
#pragma once
#include <cstddef>
#include <vector>

#include "ir/program.hpp"
#include "layout/array.hpp"
#include "layout/indexing.hpp"

namespace trireme {

struct Buffer {
  std::int64_t row_extent = 0, column_extent = 0;
  std::vector<std::byte> memory;
  Array array;  // points into memory; moving a Buffer keeps it valid, copying does not

  Buffer() = default;
  Buffer(Buffer&&) = default;
  Buffer& operator=(Buffer&&) = default;
  std::int64_t entries() const { return row_extent * column_extent; }
};

struct Buffers {
  std::vector<Buffer> operands, results;  // as in the program; constants and absent operands have no memory
  std::vector<Array> operand_arrays() const;
  std::vector<Array> result_arrays() const;
};

Buffer make_buffer(Type type, std::int64_t row_extent, std::int64_t column_extent);
Result<Buffers> make_buffers(const Program& bound, std::int64_t rows, std::int64_t columns);

}  // namespace trireme
