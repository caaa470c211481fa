// The contract's sums (DESIGN §2.4, §2.5), literally: the order of every addition is fixed here.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "ir/contract.hpp"

namespace trireme {

// Level by level w[k] = v[2k] + v[2k+1]; an odd last one moves up unchanged. `add(into, from)` is `into = into + from`.
template <typename Value, typename Add>
Value sum_neighbouring_pairs(std::vector<Value> v, Add&& add) {
  while (v.size() > 1) {
    std::size_t pairs = v.size() / 2;
    for (std::size_t k = 0; k < pairs; ++k) {
      add(v[2 * k], v[2 * k + 1]);
      if (k != 2 * k) v[k] = std::move(v[2 * k]);
    }
    if (v.size() % 2 == 1) v[pairs] = std::move(v.back());
    v.resize((v.size() + 1) / 2);
  }
  return std::move(v[0]);
}

// One stripe: for s = 128, 64, ..., 1: v[t] = v[t] + v[t+s], absent elements being -0.0.
template <typename T>
T stripe_sum(std::span<const T> elements) {
  std::array<T, contract::stripe> v;
  v.fill(T(-0.0));
  std::copy(elements.begin(), elements.end(), v.begin());
  for (std::size_t s = contract::stripe / 2; s >= 1; s /= 2)
    for (std::size_t t = 0; t < s; ++t) v[t] = v[t] + v[t + s];
  return v[0];
}

template <typename T>
T row_sum(std::span<const T> elements) {
  if (elements.empty()) return T(0.0);
  std::vector<T> stripes;
  for (std::size_t at = 0; at < elements.size(); at += contract::stripe)
    stripes.push_back(stripe_sum(elements.subspan(at, std::min<std::size_t>(contract::stripe, elements.size() - at))));
  return sum_neighbouring_pairs(std::move(stripes), [](T& into, T from) { into = into + from; });
}

}  // namespace trireme
