// For tests: a problem run by a device on memory between guard pages, and compared with the reference in every byte.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "devices/arguments.hpp"
#include "layout/buffers.hpp"
#include "layout/elements.hpp"
#include "layout/overlap.hpp"
#include "problem/digest.hpp"
#include "problem/samples.hpp"
#include "reference/reference.hpp"
#include "support/float_types.hpp"
#include "support/guarded.hpp"

namespace trireme {

// Strides of any kind for an array's axes: in any order of places, with gaps, backwards; of operands some repeat.
inline Dims random_strides(const Dims& extents, bool result, std::mt19937_64& random) {
  auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  Dims strides = contiguous_strides(extents);
  std::vector<std::size_t> order;
  for (std::size_t k = extents.size(); k-- > 0;) order.push_back(k);
  std::int64_t kind = below(4);  // as they are, last axis first with gaps, any order, any order and some repeat
  if (kind >= 2) std::shuffle(order.begin(), order.end(), random);
  std::int64_t reach = 1;
  for (std::size_t axis : order) {
    if (kind > 0) strides[axis] = reach * (below(4) ? 1 : -1);
    reach = reach * std::max<std::int64_t>(extents[axis], 1) + (kind == 1 && below(2) ? below(9) : 0);
    if (kind == 3 && !result && below(3) == 0) strides[axis] = 0;
  }
  if (kind == 1 && !extents.empty()) strides[extents.size() - 1] = 1;
  return strides;
}

// Memory that has been run by the reference; its results began as `poison`.
class GuardedProblem {
 public:
  static constexpr unsigned char poison = 0xA5;

  GuardedProblem(const Program& program, std::int64_t rows, std::int64_t columns, std::vector<double> constants,
                 Buffers buffers)
      : program_(program),
        rows_(rows),
        columns_(columns),
        constants_(std::move(constants)),
        buffers_(std::move(buffers)) {
    for (std::size_t r = 0; r < buffers_.results.size(); ++r) {
      Buffer& buffer = buffers_.results[r];
      std::fill(buffer.memory.begin(), buffer.memory.end(), std::byte{poison});
      if (program_.results[r].accumulate)
        fill_samples(buffer.array, buffer.row_extent, buffer.column_extent, 0, program_.results[r].name,
                     default_range(buffer.array.type));
      before_.push_back(buffer.memory);
    }
  }

  Status run_reference() {
    std::vector<Array> arrays = buffers_.arrays();
    return trireme::run_reference(program_, {rows_, columns_, constants_, arrays});
  }

  // What differs; empty if nothing does.
  std::string compare(const DeviceEntry& device, const RunOptions& options, Guarded::Edge edge) const {
    std::vector<std::unique_ptr<Guarded>> memory;
    auto guarded = [&](const Buffer& buffer, const decltype(Buffer::memory)& from) {
      memory.push_back(std::make_unique<Guarded>(buffer.memory.size(), edge));
      if (!from.empty()) std::memcpy(memory.back()->data(), from.data(), from.size());
      Array array = in_bytes(buffer.array);
      if (array.data)
        array.data = memory.back()->data() + (static_cast<std::byte*>(buffer.array.data) - buffer.memory.data());
      return array;
    };
    std::vector<Array> arrays;
    for (const Buffer& buffer : buffers_.operands) arrays.push_back(guarded(buffer, buffer.memory));
    for (std::size_t r = 0; r < buffers_.results.size(); ++r)
      arrays.push_back(guarded(buffers_.results[r], before_[r]));
    Problem2d problem{rows_, columns_, constants_, arrays};
    Result<std::unique_ptr<Executable>> executable = device.compile(program_, facts_of(program_, problem));
    if (!executable) return "not compiled: " + executable.error().message;
    if (Status ran = (*executable)->run(problem, options); !ran) return "not run: " + ran.error().message;
    std::size_t k = 0;
    for (const Buffer& buffer : buffers_.operands) {
      const Guarded& here = *memory[k++];
      if (!here.intact()) return "wrote beside an operand";
      if (!buffer.memory.empty() && std::memcmp(memory[k - 1]->data(), buffer.memory.data(), buffer.memory.size()))
        return "wrote to an operand";
    }
    for (std::size_t r = 0; r < buffers_.results.size(); ++r) {
      const Buffer& wanted = buffers_.results[r];
      Guarded& here = *memory[k++];
      if (!here.intact()) return "wrote beside " + program_.results[r].name;
      const Extent extent = wanted.extent_in_bytes();
      const Type type = extent.array.type;
      for (std::int64_t row = 0; row < extent.rows; ++row)
        for (std::int64_t column = 0; column < extent.columns; ++column) {
          void* at = arrays[program_.array_of_result(r)].entry(row, column);
          std::uint64_t got = load_bits(type, at), want = load_bits(type, extent.array.entry(row, column));
          if (canonical_bits(type, got) != canonical_bits(type, want))
            return fmt::format("{}[{},{}] got {:#x} want {:#x}", program_.results[r].name, row, column, got, want);
          store_bits(type, at, want);  // NaNs are equal
        }
      if (!wanted.memory.empty() && std::memcmp(here.data(), wanted.memory.data(), wanted.memory.size()))
        return "wrote between the entries of " + program_.results[r].name;
    }
    return {};
  }

 private:
  Program program_;
  std::int64_t rows_, columns_;
  std::vector<double> constants_;
  Buffers buffers_;
  std::vector<decltype(Buffer::memory)> before_;  // of results: what a run begins with
};

}  // namespace trireme
