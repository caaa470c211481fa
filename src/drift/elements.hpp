// How far two kept arrays lie apart: the first element that differs, and how many, by how many ulps.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "drift/trace.hpp"

namespace trireme::drift {

struct ElementDifferences {
  std::int64_t row = 0, column = 0;             // the first, in the first run
  std::string a, b;                             // its values: "1.0078125 (0x3F81)"
  std::optional<std::uint64_t> ulps = {};       // between them; none of NaNs, and of types whose ulps are not known
  std::int64_t count = 0;                       // elements that differ
  std::optional<std::uint64_t> most_ulps = {};  // of those that have them
};

// Rows first_a, first_a + 1, … of one against first_b, … of the other: `rows` of them. Types and columns are equal.
// None where no element differs.
Result<std::optional<ElementDifferences>> element_differences(const Trace& a, const TracedArray& in_a,
                                                              std::int64_t first_a, const Trace& b,
                                                              const TracedArray& in_b, std::int64_t first_b,
                                                              std::int64_t rows);

// Bytes of an element that is so named; none where the name is unknown.
std::optional<std::int64_t> element_bytes(std::string_view type);

}  // namespace trireme::drift
