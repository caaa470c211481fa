// Receipts of arrays that a caller lends: operands, and results as they were computed.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "receipt/receipt.hpp"
#include "trireme/view.hpp"

namespace trireme::receipts {

struct ReceiptOptions {
  Hash hash = Hash::Xxh3;
  int axes = 1;  // the last so many make a row
  std::map<std::string, double> constants = {};
};

// Operands that are not given are absent; results that are not given were not stored.
Result<Receipt> receipt_of(std::string_view text, const std::map<std::string, View>& arrays,
                           const ReceiptOptions& options);

// Of arrays that the receipt says, by name.
Result<std::map<std::string, ReadRows>> readers_of(const Receipt& receipt, const std::map<std::string, View>& arrays);

}  // namespace trireme::receipts
