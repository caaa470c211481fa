#include "drift/align.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

namespace trireme::drift {
namespace {

// A table of so many bytes is made for a part; larger parts are divided at their anchors.
constexpr std::size_t most_cells = std::size_t{1} << 22;

class Aligner {
 public:
  Aligner(const Steps& a, const Steps& b, const std::function<int(std::size_t, std::size_t)>& likeness)
      : a_(a), b_(b), likeness_(likeness) {}

  struct Part {
    std::size_t a, a_end, b, b_end;
  };

  void align(Part part) {
    if (part.a == part.a_end || part.b == part.b_end) return;
    if (part.a_end - part.a == part.b_end - part.b &&
        std::equal(a_.keys.begin() + static_cast<std::ptrdiff_t>(part.a),
                   a_.keys.begin() + static_cast<std::ptrdiff_t>(part.a_end),
                   b_.keys.begin() + static_cast<std::ptrdiff_t>(part.b))) {
      for (; part.a < part.a_end; ++part.a, ++part.b) pairs.emplace_back(part.a, part.b);
    } else if ((part.a_end - part.a) <= most_cells / (part.b_end - part.b)) {
      by_table(part);
    } else {
      for (const By by : {By::Value, By::Anchor, By::Key})
        if (const std::vector<Pair> at = anchors(part, by); !at.empty()) return between(part, at, by != By::Key);
    }
  }

  std::vector<Pair> pairs;

 private:
  // What numbers the steps of a part: anchors by key and value, anchors by key, all steps by key.
  enum class By : std::uint8_t { Value, Anchor, Key };

  void between(const Part& part, const std::vector<Pair>& at, bool inside) {
    std::size_t a = part.a, b = part.b;
    for (const auto& [next_a, next_b] : at) {
      if (inside) align({a, next_a, b, next_b});
      pairs.emplace_back(next_a, next_b);
      a = next_a + 1, b = next_b + 1;
    }
    if (inside) align({a, part.a_end, b, part.b_end});
  }

  // The n-th step of a name in one part belongs to the n-th in the other; of these pairs the most that stand in both
  // parts' order: a longest increasing subsequence.
  std::vector<Pair> anchors(const Part& part, By by) const {
    using Name = std::pair<int, std::uint64_t>;
    auto name = [by](const Steps& steps, std::size_t k) {
      return Name(steps.keys[k], by == By::Value ? steps.values[k] : 0);
    };
    std::map<std::pair<Name, int>, std::size_t> numbered;
    std::map<Name, int> seen;
    for (std::size_t k = part.b; k < part.b_end; ++k)
      if (by == By::Key || b_.anchors[k]) numbered[{name(b_, k), seen[name(b_, k)]++}] = k;
    seen.clear();
    std::vector<Pair> found;
    for (std::size_t k = part.a; k < part.a_end; ++k) {
      if (by != By::Key && !a_.anchors[k]) continue;
      if (const auto there = numbered.find({name(a_, k), seen[name(a_, k)]++}); there != numbered.end())
        found.emplace_back(k, there->second);
    }
    std::vector<std::size_t> ends, before(found.size());  // of the subsequence of each length, its last
    for (std::size_t k = 0; k < found.size(); ++k) {
      auto place = std::lower_bound(ends.begin(), ends.end(), found[k].second,
                                    [&](std::size_t end, std::size_t b) { return found[end].second < b; });
      before[k] = place == ends.begin() ? found.size() : *(place - 1);
      if (place == ends.end()) ends.push_back(k);
      else *place = k;
    }
    std::vector<Pair> longest;
    if (!ends.empty())
      for (std::size_t k = ends.back(); k < found.size(); k = before[k]) longest.push_back(found[k]);
    std::reverse(longest.begin(), longest.end());
    return longest;
  }

  // The pairs whose likeness is most in sum, by the table of all beginnings.
  void by_table(const Part& part) {
    const std::size_t n = part.a_end - part.a, m = part.b_end - part.b;
    enum Step : std::uint8_t { SkipA, SkipB, Both };
    std::vector<std::uint8_t> steps(n * m);
    std::vector<int> above(m + 1), row(m + 1);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < m; ++j) {
        const bool skip_a = above[j + 1] >= row[j];
        int best = skip_a ? above[j + 1] : row[j];
        std::uint8_t step = skip_a ? SkipA : SkipB;
        if (a_.keys[part.a + i] == b_.keys[part.b + j])
          if (const int both = above[j] + likeness_(part.a + i, part.b + j); both > best) best = both, step = Both;
        row[j + 1] = best, steps[i * m + j] = step;
      }
      std::swap(above, row);
    }
    const std::size_t from = pairs.size();
    for (std::size_t i = n, j = m; i > 0 && j > 0;) {
      const std::uint8_t step = steps[(i - 1) * m + j - 1];
      if (step == Both) pairs.emplace_back(part.a + i - 1, part.b + j - 1);
      if (step != SkipB) --i;
      if (step != SkipA) --j;
    }
    std::reverse(pairs.begin() + static_cast<std::ptrdiff_t>(from), pairs.end());
  }

  const Steps &a_, &b_;
  const std::function<int(std::size_t, std::size_t)>& likeness_;
};

}  // namespace

std::vector<Pair> align(const Steps& a, const Steps& b, const std::function<int(std::size_t, std::size_t)>& likeness,
                        int most) {
  Aligner aligner(a, b, likeness);
  std::size_t same = 0;
  while (same < a.keys.size() && same < b.keys.size() && a.keys[same] == b.keys[same] && likeness(same, same) == most)
    aligner.pairs.emplace_back(same, same), ++same;
  aligner.align({same, a.keys.size(), same, b.keys.size()});
  return std::move(aligner.pairs);
}

}  // namespace trireme::drift
