// Which events of two runs are the same step: those of equal keys, in the order of both. Runs of one model align one by
// one; where operators were replaced, left out or added, modules hold the rest in place.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace trireme::drift {

struct Steps {
  std::vector<int> keys;              // equal numbers for equal keys, over both runs
  std::vector<std::uint64_t> values;  // likewise of what they give
  std::vector<bool> anchors;          // steps that are looked for first where much differs: modules
};

using Pair = std::pair<std::size_t, std::size_t>;  // a step of each

// `likeness(a, b)` of two steps with one key: 1 or more, more where they are likelier the same. Where all of `a` and
// `b` up to some step is as like as can be (`most`), it is paired without looking further.
std::vector<Pair> align(const Steps& a, const Steps& b, const std::function<int(std::size_t, std::size_t)>& likeness,
                        int most);

}  // namespace trireme::drift
