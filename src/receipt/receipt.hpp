// A receipt: what was computed, on what, and digests of every operand and result. docs/receipts.md is its
// specification.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plan/check.hpp"
#include "receipt/array_digests.hpp"
#include "trireme/result.hpp"
#include "trireme/type.hpp"

namespace trireme::receipts {

// Ed25519 (RFC 8032) over signed_form(). Made and verified outside: here it is text.
struct Signature {
  std::string key, value;  // the public key's 64 and the signature's 128 hex digits
};

struct Receipt {
  Hash hash = Hash::Xxh3;  // of all its digests
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
  std::optional<Signature> signature;
};

// Of a problem that is laid out as its arrays are, and was run. `rows_of_array`: what reads them, as Program::array
// counts.
Result<Receipt> make_receipt(const Prepared& laid, std::string_view text, Hash hash,
                             const std::function<Result<ReadRows>(std::size_t array)>& rows_of_array);

std::string print(const Receipt& receipt);        // canonical, without a newline
std::string signed_form(const Receipt& receipt);  // the same without the signature: what a signature covers
Status check_signature(const Receipt& receipt);   // that one may stand there: its form, and the hash
Result<Receipt> parse_receipt(std::string_view json);

// The problem that a receipt says, laid out without memory and found to be what its arrays say.
Result<Prepared> layout_of(const Receipt& receipt);

}  // namespace trireme::receipts
