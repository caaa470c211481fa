// What the control flow of a WebAssembly function makes of its locals, as far as compiling time depends on it.
//
// Compilers bring code into SSA form, which names a value anew wherever control flow joins and its local may have been
// written on one of the ways there; register allocation then moves these values along each way. Only locals that are
// read in another basic block than they were written in matter (semi-pruned SSA; Briggs, Cooper, Harvey and Simpson).
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

namespace trireme::wasm {

class LocalFlow {
 public:
  explicit LocalFlow(std::int64_t locals)
      : written_in_(static_cast<std::size_t>(locals)), words_((written_in_.size() + 63) / 64), crosses_(words_) {
    open(0);  // the function; nothing is carried to its end
  }

  void next_block() { ++block_; }  // a basic block
  // Control flow joins at a block's end, or a loop's start; `ways` lead there that are no branches.
  void open(int ways) {
    open_.push_back(joins_.size());
    joins_.push_back({.ways = ways, .written = std::vector<std::uint64_t>(words_)});
  }
  void close() {
    const std::vector<std::uint64_t>& written = joins_[open_.back()].written;
    open_.pop_back();
    if (open_.empty()) return;
    std::vector<std::uint64_t>& outer = joins_[open_.back()].written;
    std::ranges::transform(written, outer, outer.begin(), std::bit_or<>());
  }
  bool is_open() const { return !open_.empty(); }
  std::int64_t depth() const { return static_cast<std::int64_t>(open_.size()) - 1; }
  void branch_to(std::uint32_t target) {  // 0: the innermost
    if (target < open_.size()) ++joins_[open_[open_.size() - 1 - target]].ways;
  }

  bool has(std::uint32_t local) const { return local < written_in_.size(); }
  void write(std::uint32_t local) {
    written_in_[local] = block_;
    joins_[open_.back()].written[local / 64] |= bit(local);
  }
  void read(std::uint32_t local) {
    if (written_in_[local] != block_) crosses_[local / 64] |= bit(local);
  }

  std::int64_t crossing_locals() const { return count_in_both(crosses_, crosses_); }
  // Over all joins: the locals that matter and may have been written, times the ways that lead there.
  std::int64_t merges() const {
    std::int64_t sum = 0;
    for (const Join& join : joins_) sum += count_in_both(join.written, crosses_) * join.ways;
    return sum;
  }

 private:
  struct Join {
    std::int64_t ways;
    std::vector<std::uint64_t> written;  // a bit a local
  };
  static std::uint64_t bit(std::uint32_t local) { return std::uint64_t{1} << local % 64; }
  static std::int64_t count_in_both(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
    std::int64_t sum = 0;
    for (std::size_t k = 0; k < a.size(); ++k) sum += std::popcount(a[k] & b[k]);
    return sum;
  }

  std::vector<std::uint32_t> written_in_;  // a basic block; the first one: by the caller, or nobody
  std::uint32_t block_ = 0;
  std::size_t words_;
  std::vector<std::uint64_t> crosses_;
  std::vector<Join> joins_;
  std::vector<std::size_t> open_;  // the innermost last
};

}  // namespace trireme::wasm
