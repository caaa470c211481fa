// Memory of its own for every operand and result of a bound program: what checks and samples work on.
#pragma once
#include <cstddef>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "ir/program.hpp"
#include "layout/array.hpp"
#include "layout/indexing.hpp"

namespace trireme {

// Where an array lies in its memory; contiguous and row-major unless said. In elements.
struct Placement {
  std::int64_t offset = 0;
  std::optional<std::int64_t> row_stride = {};
  friend bool operator==(const Placement&, const Placement&) = default;
};

// Memory that begins at a cache line, as frameworks give it: vectors that straddle two lines cost twice.
template <typename T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t line{64};
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), line)); }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, line); }
  friend bool operator==(CacheLineAllocator, CacheLineAllocator) { return true; }
};

struct Buffer {
  std::int64_t row_extent = 0, column_extent = 0;
  std::vector<std::byte, CacheLineAllocator<std::byte>> memory;
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

// The smallest memory that holds the placed array.
Buffer make_buffer(Type type, std::int64_t row_extent, std::int64_t column_extent, const Placement& placement = {});

// `placements` by the names of operands and results.
Result<Buffers> make_buffers(const Program& bound, std::int64_t rows, std::int64_t columns,
                             const std::map<std::string, Placement>& placements = {});

}  // namespace trireme
