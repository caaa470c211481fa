// How long it takes from an operator's text to the program that targets lower: parsed, differentiated, bound,
// simplified, expanded, verified in between. The goal is a millisecond.
//
//   front_end [OPERATOR]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

#include "language/parse.hpp"
#include "plan/ops.hpp"
#include "problem/resolve.hpp"

using namespace trireme;

namespace {

double best_microseconds(auto&& work) {
  double best = 1e9;
  auto begin = std::chrono::steady_clock::now();
  for (int k = 0; k < 1000; ++k) {
    auto start = std::chrono::steady_clock::now();
    work();
    auto end = std::chrono::steady_clock::now();
    best = std::min(best, std::chrono::duration<double, std::micro>(end - start).count());
    if (k > 20 && end - begin > std::chrono::milliseconds(100)) break;
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  fmt::print(
      "| operator | parse | differentiate | backward bound and expanded | text to expanded backward | nodes |\n");
  fmt::print("| --- | ---: | ---: | ---: | ---: | ---: |\n");
  for (const OperatorText& each : operator_texts()) {
    if (argc > 1 && each.name != std::string_view(argv[1])) continue;
    Remarks remarks = parse_remarks(each.text).value();
    Problem problem = parse_problem(std::string(each.name) + " " + remarks.tries[0] + " backward").value();
    Program forward = parse(each.text).value(), backward = differentiate(forward).value();
    Binding binding = binding_of(problem, forward, backward).value();
    double parsing = best_microseconds([&] { parse(each.text).value(); });
    double deriving = best_microseconds([&] { differentiate(forward).value(); });
    double preparing = best_microseconds([&] { prepare(backward, binding).value(); });
    double whole =
        best_microseconds([&] { prepare(differentiate(parse(each.text).value()).value(), binding).value(); });
    fmt::print("| {} | {:.0f} µs | {:.0f} µs | {:.0f} µs | {:.0f} µs | {} |\n", each.name, parsing, deriving, preparing,
               whole, prepare(backward, binding).value().expanded.size());
  }
}
