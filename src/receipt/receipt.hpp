// A receipt: what was computed, on what, and digests of every operand and result. docs/receipts.md is its
// specification.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/check.hpp"
#include "trireme/result.hpp"
#include "trireme/type.hpp"

namespace trireme::receipts {

// Rows of a block of an array that has `rows`: the least power of two that makes at most 1024 blocks.
std::int64_t block_rows(std::int64_t rows);

// `rows` rows of `columns` entries, row-major and without gaps.
struct ArrayDigests {
  std::string name;
  Type type = Type::F32;
  std::int64_t rows = 0, columns = 0;
  std::string digest;               // of all entries, as a problem line's
  std::vector<std::string> leaves;  // of each block of rows
  std::string root;                 // of the tree over them

  std::int64_t row_bytes() const { return columns * bits(type) / 8; }
  std::int64_t block() const { return block_rows(rows); }
  std::int64_t blocks() const { return (rows + block() - 1) / block(); }
};

struct Receipt {
  int contract = 0;
  std::string text;  // of the program
  bool backward = false;
  std::set<std::string> gradients;  // of a backward: those that were named
  std::vector<std::int64_t> shape;
  int axes = 1;
  Type compute = Type::F32;
  std::map<std::string, double> constants;
  std::set<std::string> absent;  // operands
  std::vector<ArrayDigests> operands, results;
};

std::string digest_rows(const ArrayDigests& array, std::span<const std::byte> rows);  // whole rows of it
std::string root_of(const std::vector<std::string>& leaves);

// Of a problem that has been run, its arrays without gaps.
Result<Receipt> make_receipt(const Prepared& ran, std::string_view text);

std::string print(const Receipt& receipt);  // canonical, without a newline
Result<Receipt> parse_receipt(std::string_view json);

// The problem that a receipt says, laid out without memory and found to be what its arrays say.
Result<Prepared> layout_of(const Receipt& receipt);

}  // namespace trireme::receipts
