#include <gtest/gtest.h>

#include "ir/verify.hpp"
#include "language/parse.hpp"
#include "language/print.hpp"
#include "language/random_program.hpp"
#include "passes/passes.hpp"

namespace trireme {
namespace {

const std::string head = "p(x[i,j], s[i], w[j]) -> (y[i,j])\n";

std::string composed(const std::string& lines) {
  Program program = compose(parse(head + lines).value());
  EXPECT_TRUE(verify(program));
  std::string text = print(program);
  EXPECT_EQ(print(parse(text).value()), text);
  EXPECT_EQ(print(compose(program)), text);  // once is enough
  return text.substr(head.size());
}

TEST(Compose, makes_totals_of_what_waits_for_a_total) {
  EXPECT_EQ(composed("  a = mean(x)\n  y = (x - a) / mean((x - a) * (x - a)) + sum(x)\n"),
            "    t1 = variance_sum(x)\n"
            "    a  = t1 / n\n"
            "    y  = (x - a) / (variance_squares(x) / n) + t1\n");
  EXPECT_EQ(composed("  y = sum((w * x - mean(w * x)) * (w * x - mean(w * x)))\n"),
            "    y = variance_squares(w * x)\n");
  EXPECT_EQ(composed("  e = exp(x - amax(x))\n  y = e / sum(e)\n"),
            "    e = exp(x - logsumexp_top(x))\n"
            "    y = e / logsumexp_sum(x)\n");
  EXPECT_EQ(composed("  t = amax(x)\n  y = sum(exp(x - select(abs(t) < inf, t, 0)))\n"), "    y = logsumexp_sum(x)\n");
  EXPECT_EQ(composed("  t = max(amax(x), s)\n  y = sum(exp(x - t))\n"),
            "    t1 = logsumexp_top(x)\n"
            "    t  = max(t1, s)\n"
            "    y  = logsumexp_sum(x) * exp(select(abs(t1) < inf, t1, 0) - t)\n");
  // Weights of exponentials; what is the row's own stands outside.
  EXPECT_EQ(composed("  e = exp(x - amax(x))\n  y = sum(e * w) / sum(e)\n"),
            "    y = logsumexp_weighted(x, w) / logsumexp_sum(x)\n");
  EXPECT_EQ(composed("  y = sum(select(0 < w, s * (w * exp(x - logsumexp(x))) / s, 0))\n"),
            "    t1 = logsumexp_top(x)\n"
            "    t2 = exp(select(abs(t1) < inf, t1, 0) - logsumexp(x))\n"
            "    y  = logsumexp_weighted(x, select(0 < w, w, 0)) * t2 * s / s\n");
  EXPECT_EQ(composed("  y = sum(x * softmax(x))\n"), "    y = logsumexp_weighted(x, x) / logsumexp_sum(x)\n");
  EXPECT_EQ(composed("  y = sum(exp(x - amax(x)) * s)\n"), "    y = logsumexp_sum(x) * s\n");
  // What stands beside a composed reduction is a total of it.
  EXPECT_EQ(composed("  y = variance(x) * mean(x) + logsumexp(x) - amax(x)\n"),
            "    y = variance(x) * (variance_sum(x) / n) + logsumexp(x) - logsumexp_top(x)\n");
}

TEST(Compose, leaves_what_is_something_else) {
  for (const char* lines : {
           "    y = sum((x - mean(w)) * (x - mean(w)))\n",  // another element's mean
           "    y = sum(exp(x - amax(w)))\n",               // another element's maximum
           "    y = sum(exp(x - (amax(x) + w)))\n",         // not one value a row
           "    y = sum(exp(x - s)) + amax(x)\n",           // waits for nothing
           "    y = sum((x - mean(x)) * (x - s)) + mean(x)\n",
           "    y = sum(exp(amax(x) - x))\n",
           "    y = sum(tanh(x - amax(x)))\n",
           "    t = amax(w)\n    y = sum(softmax(x) * (w - t))\n",  // the weight waits itself
           "    y = sum(select(0 < w, softmax(x), 1))\n",
           "    y = sum(softmax(x) / w)\n",
           "    y = sum(softmax(x))\n",
       })
    EXPECT_EQ(head + composed(lines), print(parse(head + lines).value()));
}

TEST(Compose, keeps_random_programs_whole) {
  for (int seed = 0; seed < 500; ++seed) {
    Program program = random_program({.seed = static_cast<std::uint64_t>(seed), .size = 4 + seed % 40});
    Program made = compose(program);
    EXPECT_TRUE(verify(made)) << print(program);
    EXPECT_EQ(made.results.size(), program.results.size());
  }
}

}  // namespace
}  // namespace trireme
