// What the compiler can be asked for: one record a verb.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json.hpp"
#include "trireme/result.hpp"

namespace trireme::web {

struct Answer {
  std::string text;
  std::vector<std::uint8_t> bytes = {};
};

using Words = std::span<const std::string_view>;

struct Verb {
  std::string_view name;
  std::size_t words;  // beside its name
  Result<Answer> (*run)(Words words);
};

std::span<const Verb> verbs();

// Problems that stay in memory (problems.cpp).
Result<Answer> open_problem(Words words);   // TEXT LINE: its arrays and where they lie, operands filled with samples
Result<Answer> run_problem(Words words);    // NUMBER reference|lanes: fills the results; their digest
Result<Answer> ask_oracle(Words words);     // NUMBER: largest errors of the results at hand; every result's elements
Result<Answer> close_problem(Words words);  // NUMBER

}  // namespace trireme::web
