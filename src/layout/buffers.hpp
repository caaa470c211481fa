// Memory of its own for every operand and result of a bound program: what checks and samples work on.
#pragma once
#include <cstddef>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "ir/program.hpp"
#include "layout/array.hpp"
#include "layout/flatten.hpp"
#include "layout/indexing.hpp"
#include "layout/overlap.hpp"

namespace trireme {

// Where an array lies in its memory, in elements.
struct Placement {
  std::int64_t offset = 0;  // of its lowest element
  // Of all its axes, outermost first; or of its outer axes alone, the columns then lying side by side; or one for its
  // rows, however many axes they have. None: contiguous and row-major.
  Dims strides = {};
  std::int64_t rows = -1;  // of a table whose rows an operand picks; less than 0: as many as the problem has
  friend bool operator==(const Placement&, const Placement&) = default;
};

// One stride for each axis.
Result<Dims> strides_of(const Placement& placement, const ArrayAxes& axes);

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
  Extent extent_in_bytes() const;  // as kernels see it
};

struct Buffers {
  std::vector<Buffer> operands, results;  // as in the program; constants and absent operands have no memory
  std::vector<Array> arrays() const;  // as Program::array counts them, and as kernels see them: packed ones as bytes
};

// Or none, where only the layout is asked for: arrays that have entries then lie at an address of a line, which nobody
// may touch, and the time it takes does not depend on the extents.
enum class Backing : std::uint8_t { Memory, None };

// The smallest memory that holds the placed array.
Result<Buffer> make_buffer(Type type, const Indexing& indexing, const ArrayAxes& axes, const Placement& placement,
                           Backing backing = Backing::Memory);

// For problems of this shape, whose last `normalised` axes make a row; `placements` by the names of operands and
// results.
Result<Buffers> make_buffers(const Program& bound, const Dims& shape, int normalised = 1,
                             const std::map<std::string, Placement>& placements = {},
                             Backing backing = Backing::Memory);

}  // namespace trireme
