// How examples/jit/normalization.cu is called for a problem of rms_norm or layer_norm: the launches, one after the
// other. Shared by what runs them on a GPU and by the test that runs them without one.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "reference/oracle.hpp"
#include "support/float_types.hpp"

namespace trireme::bench {

struct TextbookLaunch {
  std::string kernel;
  std::int64_t grid = 1, block = 256;
  std::vector<std::vector<unsigned char>> arguments;
};

struct TextbookProblem {
  std::string program;  // "rms_norm" or "layer_norm"
  bool backward = false;
  std::int64_t rows = 0, columns = 0;
  float eps = 0;
  std::int64_t block = 256;                        // threads: a power of two
  std::int64_t parts = 0;                          // blocks of a backward
  std::function<void*(const std::string&)> array;  // by Trireme's names: x, gamma, dy …
  float* workspace = nullptr;                      // workspace_floats() of them

  std::int64_t gradients() const { return !backward ? 0 : program == "layer_norm" ? 2 : 1; }
  std::int64_t workspace_floats() const { return gradients() * parts * columns; }
};

inline std::vector<TextbookLaunch> textbook_launches(const TextbookProblem& p) {
  std::vector<TextbookLaunch> launches;
  auto add = [&](std::string kernel, std::int64_t grid, auto... arguments) {
    TextbookLaunch launch{std::move(kernel), grid, p.block, {}};
    auto pack = [&](const auto& value) {
      launch.arguments.emplace_back(sizeof value);
      std::memcpy(launch.arguments.back().data(), &value, sizeof value);
    };
    (pack(arguments), ...);
    launches.push_back(std::move(launch));
  };
  const int rows = static_cast<int>(p.rows), columns = static_cast<int>(p.columns), parts = static_cast<int>(p.parts);
  auto at = [&](const char* name) { return p.array(name); };
  const bool layer = p.program == "layer_norm";
  if (!p.backward) {
    if (layer)
      add("layer_norm_forward", p.rows, at("x"), at("gamma"), at("beta"), at("y"), at("average"), at("rstd"), rows,
          columns, p.eps);
    else add("rms_norm_forward", p.rows, at("x"), at("gamma"), at("y"), at("rstd"), rows, columns, p.eps);
    return launches;
  }
  if (layer)
    add("layer_norm_backward", p.parts, at("dy"), at("x"), at("gamma"), at("average"), at("rstd"), at("dx"),
        p.workspace, rows, columns);
  else
    add("rms_norm_backward", p.parts, at("dy"), at("x"), at("gamma"), at("rstd"), at("dx"), p.workspace, rows, columns);
  for (std::int64_t k = 0; k < p.gradients(); ++k)
    add("column_sums", (p.columns + p.block - 1) / p.block, p.workspace + k * p.parts * p.columns,
        at(k == 0 ? "dgamma" : "dbeta"), parts, columns);
  return launches;
}

// The oracle bounds what the contract's own order of operations may cost, element by element. The textbook adds in
// another order: up to columns / block terms one by one before its tree, and the parts of a column one by one. What
// that costs is bounded by the number of additions a term goes through, here at most eight times the contract's (24
// against 12 at 4096 columns and 256 threads; 72 against 11 for columns of 512 rows in 64 parts; 34 against 6 for 33
// rows). So an element may be off by eight times the largest bound in its result, and by one rounding to storage.
struct TextbookError {
  std::int64_t row = 0, column = 0;
  double got = 0, want = 0, error = 0, allowed = 0;
  double worst = 0;  // error / allowed
};

inline TextbookError textbook_error(const OracleResult& oracle, const Array& stored) {
  double largest = 0;
  for (const OracleElement& each : oracle.elements) largest = std::max(largest, each.tolerance());
  TextbookError found;
  for (std::int64_t r = 0; r < oracle.row_extent; ++r)
    for (std::int64_t c = 0; c < oracle.column_extent; ++c) {
      double got = load_f64(stored.type, stored.entry(r, c)), want = static_cast<double>(oracle.at(r, c).value);
      double rounding = std::ldexp(std::fabs(want), stored.type == Type::BF16 ? -8 : -23);
      double error = std::fabs(got - want), allowed = 8 * largest + rounding;
      double worst = error == 0 ? 0 : std::isnan(error) ? HUGE_VAL : error / allowed;
      if (r + c > 0 && worst <= found.worst) continue;
      found = {r, c, got, want, error, allowed, worst};
    }
  return found;
}

}  // namespace trireme::bench
