// A trace: what a model's modules and operators took and gave, as digests by blocks of rows, and elements where they
// were kept. trireme.torch.trace writes it; docs/drift.md is its specification.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/result.hpp"

namespace trireme::drift {

// Rows are all axes but the last. What is not digested (memory that could not be read) has no `digests`.
struct TracedArray {
  std::string name, type;  // a storage type, or torch's name of another
  std::vector<std::int64_t> shape;
  std::optional<std::int64_t> digests;   // where those of its blocks begin in rows.bin
  std::optional<std::int64_t> elements;  // where they begin in arrays.bin
  std::optional<std::int64_t> from;      // the event that wrote it last
  bool unset = false;                    // of memory that was never wholly written where the trace could see it

  std::int64_t rows() const;
  std::int64_t columns() const;
  std::int64_t block() const;  // rows of a block
  std::int64_t blocks() const;
};

struct Event {
  enum class Kind : std::uint8_t { State, Operator, Module } kind = Kind::State;  // a state: of a parameter or buffer
  std::int64_t number = 0, call = 0;  // the outermost module call that it belongs to; 0 before the first
  std::string phase, path, name;      // forward, backward, step; the module's path; its class, or the operator
  std::string arguments;              // that are no arrays
  bool random = false;
  std::vector<TracedArray> in, out;

  std::string label() const;  // "forward layers.0.mlp aten.mm.default"
};

class Trace {
 public:
  // `progress` is told which part has been read.
  static Result<Trace> read(const std::string& folder, const std::function<void(double)>& progress);
  Trace(Trace&&) noexcept;
  ~Trace();

  const std::string& folder() const { return folder_; }
  const std::vector<Event>& events() const { return events_; }
  bool ended() const { return ended_; }
  const std::string& failure() const { return failure_; }  // of what was traced

  // Digests of some blocks; elements as bytes, from a byte of an array on.
  Result<std::vector<std::uint64_t>> digests(const TracedArray& array, std::int64_t first, std::int64_t count) const;
  Status elements(const TracedArray& array, std::int64_t from_byte, std::span<std::byte> bytes) const;

 private:
  Trace() = default;
  std::string folder_, failure_;
  std::vector<Event> events_;
  bool ended_ = false;
  int rows_ = -1, arrays_ = -1;  // files
};

}  // namespace trireme::drift
