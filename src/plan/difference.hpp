// Where two runs of a problem differ: the first element, in the order of the digest, whose bits are not the same.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/check.hpp"

namespace trireme {

// The results' memory as a run left it.
using KeptResults = std::vector<std::vector<std::byte>>;
KeptResults keep_results(const Prepared& prepared);

// dgamma[31], y[3,17], rstd[3], total[]
std::string element_name(const Output& result, std::int64_t row, std::int64_t column);

struct Difference {
  std::string element;
  std::string got, want;  // bits, as wide as the storage type: 0x3E01
};

// Against what an earlier run of the same problem left; all NaNs count as equal.
std::optional<Difference> first_difference(const Prepared& prepared, const KeptResults& wanted);

}  // namespace trireme
