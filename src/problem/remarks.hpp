// The `#:` remarks in an operator's file: what tests and benchmarks need to know, so that adding an operator touches
// one file.
//
//   #: try 7x257                        a problem line without the operator's name
//   #: range target 0..n-1 integer      what samples of an operand (also of its backward) look like; bounds are
//   numbers,
//                                       n, n+NUMBER or n-NUMBER
//   #: use norms                        what it is for: the heading it stands under in docs/operators.md
//   #: returns q scale                  what a call gives back unless told; else the results that take gradients
// Several may share a line, each after its own `#:`.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "problem/samples.hpp"
#include "trireme/result.hpp"

namespace trireme {

struct RangeBound {
  bool columns = false;  // counted from n
  double plus = 0;
  double at(std::int64_t n) const { return (columns ? static_cast<double>(n) : 0) + plus; }
};

struct RangeRemark {
  RangeBound low, high;
  bool integer = false;
  SampleRange at(std::int64_t n) const { return {low.at(n), high.at(n), integer}; }
};

struct Remarks {
  std::vector<std::string> tries;  // "7x257", "33x4096 gamma=none"
  std::map<std::string, RangeRemark> ranges;
  std::vector<std::string> returns;
  std::string use = "others";
};

Result<Remarks> parse_remarks(std::string_view program_text);

}  // namespace trireme
