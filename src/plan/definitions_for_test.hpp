// What each operator means, in plain double arithmetic and the textbook's words: nothing here is shared with programs,
// passes or the reference. Tests only.
#pragma once
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/float_types.hpp"

namespace trireme {

struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values;
  double& at(std::int64_t r, std::int64_t c) { return values[r * columns + c]; }
  double at(std::int64_t r, std::int64_t c) const { return values[r * columns + c]; }
};

struct Given {
  std::int64_t rows = 0, columns = 0;
  std::map<std::string, Matrix> arrays;  // absent operands are not there
  std::map<std::string, double> constants;
  std::map<std::string, Type> types;
};

using Vector = std::vector<double>;
using RowResults = std::map<std::string, Vector>;  // one value, or one a column

// One row of a problem.
struct Row {
  const Given& given;
  std::int64_t i, n;

  bool has(const std::string& name) const { return given.arrays.contains(name); }
  double at(const std::string& name, std::int64_t r, std::int64_t c, double otherwise = NAN) const {
    auto it = given.arrays.find(name);
    return it == given.arrays.end() ? otherwise : it->second.at(r, c);
  }
  Vector elements(const std::string& name) const {
    return each([&](std::int64_t j) { return at(name, i, j); });
  }
  double constant(const std::string& name) const { return given.constants.at(name); }
  std::int64_t integer(const std::string& name) const { return std::llround(constant(name)); }
  double stored(const std::string& name, double value) const {
    auto it = given.types.find(name);
    return it == given.types.end() ? value : through_type(it->second, value);
  }

  template <typename F>
  Vector each(F&& f) const {
    Vector made;
    for (std::int64_t j = 0; j < n; ++j) made.push_back(f(j));
    return made;
  }
  template <typename F>
  double sum(F&& f) const {
    long double total = 0;
    for (std::int64_t j = 0; j < n; ++j) total += f(j);
    return static_cast<double>(total);
  }
  template <typename F>
  double largest(F&& f) const {
    double found = -HUGE_VAL;
    for (std::int64_t j = 0; j < n; ++j) found = std::fmax(found, f(j));
    return found;
  }
};

namespace definitions {

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
inline double gelu_erf(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
inline double relu(double x) { return x > 0 ? x : 0; }

inline Vector sum_as_stored(const Row& row) {
  return row.each([&](auto j) { return row.stored("h", row.at("x", row.i, j) + row.at("residual", row.i, j)); });
}

// 1 / sqrt(mean square), of values less `average`.
inline double inverse_deviation(const Row& row, const Vector& x, double average = 0) {
  return 1 /
         std::sqrt(row.sum([&](auto j) { return (x[j] - average) * (x[j] - average); }) / row.n + row.constant("eps"));
}

inline void rms(const Row& row, RowResults& out, const Vector& x, const std::function<double(std::int64_t)>& weight) {
  double rstd = inverse_deviation(row, x);
  out["rstd"] = {rstd};
  out["y"] = row.each([&](auto j) { return x[j] * rstd * weight(j); });
}

inline double gamma_of(const Row& row, std::int64_t j) { return row.at("gamma", 0, j, 1); }
inline double offset_gamma(const Row& row, std::int64_t j) { return gamma_of(row, j) + row.constant("offset"); }

inline void layer(const Row& row, RowResults& out, const Vector& x, const std::function<double(std::int64_t)>& scale,
                  const std::function<double(std::int64_t)>& shift) {
  double average = row.sum([&](auto j) { return x[j]; }) / row.n, rstd = inverse_deviation(row, x, average);
  out["average"] = {average};
  out["rstd"] = {rstd};
  out["y"] = row.each([&](auto j) { return (x[j] - average) * rstd * scale(j) + shift(j); });
}

// Replaces y by q and scale. A scale that is given is taken as it is: the gradient does not know how it came about.
inline void quantise(const Row& row, RowResults& out) {
  Vector y = out["y"];
  double top = std::fmax(row.largest([&](auto j) { return std::fabs(y[j]); }), row.constant("least"));
  double scale = row.at("scale", row.i, 0, top / facts(row.given.types.at("q")).largest);
  out.erase("y");
  out["scale"] = {scale};
  out["q"] = row.each([&](auto j) { return y[j] / scale; });
}

inline void gated(const Row& row, RowResults& out, double (*gate)(double)) {
  out["y"] = row.each([&](auto j) { return gate(row.at("gate", row.i, j)) * row.at("x", row.i, j); });
}

// log(sum(exp(x)))
inline double log_sum_exp(const Row& row) {
  double top = row.largest([&](auto j) { return row.at("x", row.i, j); });
  return top + std::log(row.sum([&](auto j) { return std::exp(row.at("x", row.i, j) - top); }));
}

}  // namespace definitions

struct OperatorDefinition {
  std::string name;
  std::vector<std::string> gradient_lines;  // small problems: shapes, constants, absent operands
  void (*define)(const Row& row, RowResults& out);
};

inline const std::vector<OperatorDefinition>& operator_definitions() {
  using namespace definitions;
  static const std::vector<OperatorDefinition> table = {
      {"add_layer_norm",
       {"3x5", "2x7 gamma=none beta=none"},
       [](const Row& row, RowResults& out) {
         Vector h = sum_as_stored(row);
         layer(
             row, out, h, [&](auto j) { return gamma_of(row, j); }, [&](auto j) { return row.at("beta", 0, j, 0); });
         out["h"] = h;
       }},
      {"add_rms_norm",
       {"3x5", "2x7 gamma=none offset=0.5"},
       [](const Row& row, RowResults& out) {
         Vector h = sum_as_stored(row);
         rms(row, out, h, [&](auto j) { return offset_gamma(row, j); });
         out["h"] = h;
       }},
      {"add_rms_norm_quant",
       {"3x5 q=i8", "2x7 q=f8e4m3 gamma=none"},
       [](const Row& row, RowResults& out) {
         Vector h = sum_as_stored(row);
         rms(row, out, h, [&](auto j) { return offset_gamma(row, j); });
         quantise(row, out);
         out["h"] = h;
       }},
      {"adamw",
       {"3x5", "2x7 lr=0.5 decay=0.1 unbias1=2 unbias2=5"},
       [](const Row& row, RowResults& out) {
         for (std::int64_t j = 0; j < row.n; ++j) {
           const double p = row.at("p", row.i, j), g = row.at("g", row.i, j);
           const double beta1 = row.constant("beta1"), beta2 = row.constant("beta2");
           const double mean = beta1 * row.at("m", row.i, j) + (1 - beta1) * g;
           const double square = beta2 * row.at("v", row.i, j) + (1 - beta2) * g * g;
           const double unbiased = mean * row.constant("unbias1");
           const double step = unbiased / (std::sqrt(square * row.constant("unbias2")) + row.constant("eps"));
           out["new_m"].push_back(mean);
           out["new_v"].push_back(square);
           out["new_p"].push_back(p - row.constant("lr") * (step + row.constant("decay") * p));
         }
       }},
      {"cross_entropy",
       {"5x4 target=i32", "9x3 target=i32 ignore=-1"},
       [](const Row& row, RowResults& out) {
         double target = row.at("target", row.i, 0), lse = log_sum_exp(row);
         bool ignored = target == row.constant("ignore"), column = target >= 0 && target < row.n;
         double right = column ? row.at("x", row.i, static_cast<std::int64_t>(target)) : 0;
         out["lse"] = {lse};
         out["loss"] = {ignored ? 0 : lse - right};
       }},
      {"dynamic_tanh",
       {"3x5", "3x5 gamma=none beta=none"},
       [](const Row& row, RowResults& out) {
         out["y"] = row.each([&](auto j) {
           return gamma_of(row, j) * std::tanh(row.at("alpha", 0, 0) * row.at("x", row.i, j)) + row.at("beta", 0, j, 0);
         });
       }},
      {"gated_rms_norm",
       {"3x5", "2x7 gamma=none"},
       [](const Row& row, RowResults& out) {
         rms(row, out, row.elements("x"), [&](auto j) {
           double gate = row.at("gate", row.i, j);
           return gamma_of(row, j) * gate * sigmoid(gate);
         });
       }},
      {"geglu", {"3x5"}, [](const Row& row, RowResults& out) { gated(row, out, gelu_tanh); }},
      {"geglu_erf", {"3x5"}, [](const Row& row, RowResults& out) { gated(row, out, gelu_erf); }},
      {"embedding",
       {},
       [](const Row& row, RowResults& out) {
         const double token = row.at("token", row.i, 0);
         const bool inside = token >= 0 && token < static_cast<double>(row.given.arrays.at("table").rows);
         out["y"] = row.each([&](auto j) {
           return inside ? row.at("table", static_cast<std::int64_t>(token), j) * row.at("scale", 0, 0, 1) : 0;
         });
       }},
      {"group_norm",
       {"4x6 groups=2 pixels=3", "5x6 groups=2 pixels=2 gamma=none"},
       [](const Row& row, RowResults& out) {
         std::int64_t group = row.i % row.integer("groups"), pixels = row.integer("pixels");
         layer(
             row, out, row.elements("x"), [&](auto j) { return row.at("gamma", group, j / pixels, 1); },
             [&](auto j) { return row.at("beta", group, j / pixels, 0); });
       }},
      {"js_div",
       {"3x5", "2x7 beta=0.1"},
       [](const Row& row, RowResults& out) {  // by entropies: that of the mixture, less those of its parts
         const double beta = row.constant("beta");
         auto minus_entropy = [](double p) { return p > 0 ? p * std::log(p) : 0; };
         out["loss"] = {row.sum([&](auto j) {
           const double p = std::exp(row.at("log_p", row.i, j)), q = std::exp(row.at("log_q", row.i, j));
           return beta * minus_entropy(p) + (1 - beta) * minus_entropy(q) - minus_entropy(beta * p + (1 - beta) * q);
         })};
       }},
      {"l2_norm",
       {"3x5"},
       [](const Row& row, RowResults& out) {
         Vector x = row.elements("x");
         double rstd = 1 / std::sqrt(row.sum([&](auto j) { return x[j] * x[j]; }) + row.constant("eps"));
         out["rstd"] = {rstd};
         out["y"] = row.each([&](auto j) { return x[j] * rstd; });
       }},
      {"layer_norm",
       {"3x5", "2x7 gamma=none beta=none"},
       [](const Row& row, RowResults& out) {
         layer(
             row, out, row.elements("x"), [&](auto j) { return gamma_of(row, j); },
             [&](auto j) { return row.at("beta", 0, j, 0); });
       }},
      {"log_softmax",
       {"3x5"},
       [](const Row& row, RowResults& out) {
         double lse = log_sum_exp(row);
         out["y"] = row.each([&](auto j) { return row.at("x", row.i, j) - lse; });
       }},
      {"logprob_entropy",
       {"5x4 target=i32", "3x7 target=i32 temperature=0.5"},
       [](const Row& row, RowResults& out) {
         const double t = row.constant("temperature"), target = row.at("target", row.i, 0);
         const double sum = row.sum([&](auto j) { return std::exp(row.at("x", row.i, j) / t); });
         out["lse"] = {std::log(sum)};
         out["logprob"] = {row.at("x", row.i, static_cast<std::int64_t>(target)) / t - std::log(sum)};
         out["entropy"] = {-row.sum([&](auto j) {
           const double p = std::exp(row.at("x", row.i, j) / t) / sum;
           return p > 0 ? p * std::log(p) : 0;
         })};
       }},
      {"merge_attention_states",
       {"3x5", "2x7"},
       [](const Row& row, RowResults& out) {
         const double a = std::exp(row.at("lse_a", row.i, 0)), b = std::exp(row.at("lse_b", row.i, 0));
         out["lse"] = {std::log(a + b)};
         out["y"] = row.each(
             [&](auto j) { return a + b > 0 ? (row.at("a", row.i, j) * a + row.at("b", row.i, j) * b) / (a + b) : 0; });
       }},
      {"modulated_layer_norm",
       {"5x4 tokens=2", "4x4 tokens=3 scale=none"},
       [](const Row& row, RowResults& out) {
         std::int64_t sample = row.i / row.integer("tokens");
         layer(
             row, out, row.elements("x"), [&](auto j) { return 1 + row.at("scale", sample, j, 0); },
             [&](auto j) { return row.at("shift", sample, j, 0); });
       }},
      {"quantise_mxfp8",
       {"3x64 q=f8e4m3 scale=f8e8m0", "2x40 q=f8e5m2 scale=f8e8m0 block=16"},
       [](const Row& row, RowResults& out) {  // exponents as OCP's page subtracts them
         const std::int64_t block = row.integer("block");
         Vector scales((row.n + block - 1) / block, -127);
         for (std::int64_t j = 0; j < row.n; ++j) {
           const double x = std::fabs(row.at("x", row.i, j));
           const int least = x > 0 ? std::ilogb(x) - std::ilogb(facts(row.given.types.at("q")).largest) : -127;
           scales[j / block] = std::fmax(scales[j / block], least);
         }
         for (std::size_t k = 0; k < scales.size(); ++k)
           scales[k] = row.at("scale", row.i, static_cast<std::int64_t>(k), std::exp2(scales[k]));
         out["scale"] = scales;
         out["q"] = row.each([&](auto j) { return row.at("x", row.i, j) / scales[j / block]; });
       }},
      {"reglu", {"3x5"}, [](const Row& row, RowResults& out) { gated(row, out, relu); }},
      {"rms_norm",
       {"3x5 offset=1", "2x7 gamma=none"},
       [](const Row& row, RowResults& out) {
         rms(row, out, row.elements("x"), [&](auto j) { return offset_gamma(row, j); });
       }},
      {"rms_norm_heads",
       {"5x4 heads=2", "4x4 heads=3 w=none offset=0.5"},
       [](const Row& row, RowResults& out) {
         rms(row, out, row.elements("x"),
             [&](auto j) { return row.at("w", row.i % row.integer("heads"), j, 1) + row.constant("offset"); });
       }},
      {"rms_norm_llama",
       {"3x5", "2x7 gamma=none"},
       [](const Row& row, RowResults& out) {
         rms(row, out, row.elements("x"), [](auto) { return 1; });
         out["y"] = row.each([&](auto j) { return row.stored("x", out["y"][j]) * gamma_of(row, j); });
       }},
      {"rms_norm_quant",
       {"3x5 q=i8", "2x7 q=f8e4m3 gamma=none"},
       [](const Row& row, RowResults& out) {
         rms(row, out, row.elements("x"), [&](auto j) { return offset_gamma(row, j); });
         quantise(row, out);
       }},
      {"rms_norm_rope",
       {"6x4 heads=2 positions=2", "3x6 heads=1 positions=4 gamma=none"},
       [](const Row& row, RowResults& out) {
         rms(row, out, row.elements("x"), [&](auto j) { return offset_gamma(row, j); });
         Vector t = out["y"];
         std::int64_t half = row.n / 2, position = row.i / row.integer("heads") % row.integer("positions");
         for (std::int64_t k = 0; k < half; ++k) {
           double cos = row.at("cos", position, k), sin = row.at("sin", position, k);
           out["y"][k] = t[k] * cos - t[k + half] * sin;
           out["y"][k + half] = t[k + half] * cos + t[k] * sin;
         }
       }},
      {"softmax",
       {"3x5"},
       [](const Row& row, RowResults& out) {
         double lse = log_sum_exp(row);
         out["y"] = row.each([&](auto j) { return std::exp(row.at("x", row.i, j) - lse); });
       }},
      {"swiglu",
       {"3x5", "2x4 beta=1.7"},
       [](const Row& row, RowResults& out) {
         out["y"] = row.each([&](auto j) {
           double gate = row.at("gate", row.i, j);
           return gate * sigmoid(row.constant("beta") * gate) * row.at("x", row.i, j);
         });
       }},
      {"swiglu_llama",
       {"3x5"},
       [](const Row& row, RowResults& out) {
         out["y"] = row.each([&](auto j) {
           double gate = row.at("gate", row.i, j);
           return row.stored("gate", gate * sigmoid(gate)) * row.at("x", row.i, j);
         });
       }},
  };
  return table;
}

}  // namespace trireme
