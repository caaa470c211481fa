// Checks a receipt: the operands against their digests, then the results, computed again.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "devices/device.hpp"
#include "receipt/receipt.hpp"

namespace trireme::receipts {

struct CheckOptions {
  std::optional<std::pair<std::int64_t, std::int64_t>> rows;  // first and behind the last; all unless said
  RunOptions run;
};

struct CheckedArray {
  std::string name;
  enum class State : std::uint8_t { Same, Different, LeftOut } state = State::Same;
  std::string reason;                        // of what is left out
  std::int64_t first_row = 0, last_row = 0;  // where it differs: of the first block, or one row where that is known
  std::string element, got, want;            // the first that differs, where an array was given
};

struct CheckReport {
  std::int64_t first_row = 0, last_row = 0;   // of the problem, that were looked at: whole blocks
  std::vector<CheckedArray> operands, given;  // against the receipt; `given`: results that were given
  std::vector<CheckedArray> results;          // computed again; none where operands are not those of the receipt
  bool passed() const;
};

// Every operand's reader by name, and those of results that are at hand.
Result<CheckReport> check_receipt(const Receipt& receipt, const std::map<std::string, ReadRows>& arrays,
                                  const DeviceEntry& device, const CheckOptions& options);

}  // namespace trireme::receipts
