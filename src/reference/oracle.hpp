// The oracle: runs a bound program before it is expanded, in higher precision, each value carrying bounds of what the
// contract's roundings may have cost by its own order of operations (bounded.hpp). Those bounds are the tolerance of
// every comparison with it.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ir/program.hpp"
#include "reference/reference.hpp"

namespace trireme {

// What one element of a result should be. A right result, rounded to its storage type, lies in lowest .. highest.
struct OracleElement {
  long double value = 0;  // an f64's error is smaller than what f64 could say of it
  double lowest = 0, highest = 0;
  bool unknown = false;  // nothing can be said: it hangs on a division by something around 0, say

  double tolerance() const;
  bool accepts(double stored) const;  // NaN is right where NaN is certain
};

struct OracleResult {
  std::int64_t row_extent = 0, column_extent = 0;
  std::vector<OracleElement> elements;  // row-major
  const OracleElement& at(std::int64_t r, std::int64_t c) const { return elements[r * column_extent + c]; }
};

// One per result. Of the results' arrays those are read, as they were before a run, that accumulate; composed nodes
// (calls, mean) are welcome, symbols are not. Programs that work on the bits of values are Unsupported.
Result<std::vector<OracleResult>> run_oracle(const Program& bound, const Problem2d& problem);

// The element of one result that lies furthest out, in parts of its tolerance.
struct LargestError {
  std::string result;
  std::int64_t row = 0, column = 0;
  double got = 0;
  long double want = 0;
  double error = 0, tolerance = 0;
  double worst = 0;           // error / tolerance; infinite where the element is not accepted for another reason
  std::int64_t wrong = 0;     // elements that are not accepted
  std::int64_t unknown = 0;   // elements of which the oracle knows nothing
  std::int64_t elements = 0;  // all
  bool fine() const { return wrong == 0; }
};

LargestError largest_error(std::string name, const OracleResult& oracle, const Array& stored);
std::vector<LargestError> largest_errors(const Program& bound, std::span<const OracleResult> oracle,
                                         std::span<const Array> stored);

}  // namespace trireme
